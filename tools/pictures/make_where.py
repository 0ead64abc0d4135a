# SPDX-License-Identifier: Apache-2.0
"""Draw where.svg: the way of one element from its coordinate through tile and face to a bank and an address.

    python tools/pictures/make_where.py

Every number in the picture comes out of a layout; only the positions on the page are chosen here.
"""

from colorsys import hls_to_rgb
from pathlib import Path

import tilewright as tw
from tilewright import addr, bank
from tilewright._integers import ceil_div
from tilewright.views.svg import dark_style, draw_frame

ROWS, COLS = 100, 150  # the matrix
TILE, FACE = 32, 16
BANKS, ITEM, PAGE = 12, 2, 2048  # bfloat16: 2 bytes an element, 2048 a tile
ELEMENT = (70, 118)

HEIGHT_IN_TILES, WIDTH_IN_TILES = ceil_div(ROWS, TILE), ceil_div(COLS, TILE)
TILES = HEIGHT_IN_TILES * WIDTH_IN_TILES
DEEP = ceil_div(TILES, BANKS)  # pages in the fullest bank

INK, SOFT, LINE, MARK, PANEL = "#1f2328", "#57606a", "#8c959f", "#b3261e", "#fdfcf9"
TONES = {INK: "tw-ink", SOFT: "tw-soft"}  # classes of what changes on a dark ground
ON_COLOUR = "#000000"  # words on a pale colour, which is the same on every ground
CELL, ZOOM = 56, 224  # pixels: one tile in the matrix, the tile drawn large
MATRIX_AT, ZOOM_AT, STEPS_AT, BANKS_AT = (28, 46), (348, 46), (598, 46), (84, 364)
SLOT_WIDTH, SLOT_HEIGHT = 57, 34

face = tw.row_major(FACE, FACE)
faces = tw.row_major(TILE // FACE, TILE // FACE)
tile = tw.blocked_product(face, faces)
stored = tw.blocked_product(tile, tw.row_major(HEIGHT_IN_TILES, WIDTH_IN_TILES))
matrix = tw.with_logical_shape(stored, (ROWS, COLS))
pages = tw.Layout((TILE * TILE, (BANKS, DEEP)), (ITEM @ addr, (1 @ bank, PAGE @ addr)))
where = tw.compose(pages, matrix)


def colour(number: int) -> str:
    """Return a pale colour for a bank; neighbours differ in hue and in lightness."""
    red, green, blue = hls_to_rgb(number * 5 % BANKS / BANKS, 0.76 + 0.09 * (number % 2), 0.62)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def tone(fill: str) -> str:
    """Return the class of a colour that changes on a dark ground, as an attribute."""
    return f' class="{TONES[fill]}"' if fill in TONES else ""


def text(x: float, y: float, words: str, size: int = 12, fill: str = INK, more: str = "") -> str:
    return f'<text{tone(fill)} x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" {more}>{words}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str = LINE, more: str = "") -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect{tone(fill)} x="{x:g}" y="{y:g}" {size} fill="{fill}" stroke="{stroke}" {more}/>'


def path(points: str, more: str = "") -> str:
    return f'<path d="{points}" fill="none" {more}/>'


def halo(fill: str) -> str:
    """Return what keeps words legible on lines: a rim in the colour of the ground."""
    return f'paint-order="stroke" stroke="{fill}" stroke-width="5" stroke-linejoin="round"'


def badge(x: float, y: float, number: int) -> list[str]:
    """Return a numbered disc, which ties a spot in the picture to a line of the explanation."""
    disc = f'<circle cx="{x:g}" cy="{y:g}" r="9" fill="{MARK}"/>'
    return [disc, text(x, y + 4, str(number), 12, "#ffffff", 'text-anchor="middle" font-weight="bold"')]


def draw_matrix() -> list[str]:
    left, top = MATRIX_AT
    scale = CELL / TILE
    out = [text(left, top - 12, f"{ROWS} x {COLS} matrix in {TILE} x {TILE} tiles", 13, more='font-weight="bold"')]
    for i in range(HEIGHT_IN_TILES):
        for j in range(WIDTH_IN_TILES):
            place = where(TILE * i, TILE * j)
            x, y = left + CELL * j, top + CELL * i
            out.append(box(x, y, CELL, CELL, colour(place.bank), "none"))
    data_right, data_bottom = left + COLS * scale, top + ROWS * scale
    right, bottom = left + CELL * WIDTH_IN_TILES, top + CELL * HEIGHT_IN_TILES
    edge = f"M{data_right:g} {top}H{right}V{bottom}H{left}V{data_bottom:g}H{data_right:g}Z"
    out.append(f'<path d="{edge}" fill="url(#padding)"/>')
    out.append(path(f"M{data_right:g} {top}V{data_bottom:g}H{left}", f'stroke="{INK}" stroke-width="1.5"'))
    for i in range(HEIGHT_IN_TILES):
        for j in range(WIDTH_IN_TILES):
            x, y, number = left + CELL * j, top + CELL * i, where(TILE * i, TILE * j).bank
            out.append(box(x, y, CELL, CELL, "none"))
            out.append(text(x + 8, y + CELL - 24, str(number), 16, ON_COLOUR, halo(colour(number))))
    padded = f"{HEIGHT_IN_TILES * TILE} x {WIDTH_IN_TILES * TILE}"
    legend = f"number: bank; hatched: padding to {padded}"
    out.append(text(left, bottom + 18, legend, 12, SOFT))
    return out


def draw_zoom() -> list[str]:
    left, top = ZOOM_AT
    scale = ZOOM / TILE
    row, col = ELEMENT[0] % TILE, ELEMENT[1] % TILE
    tint = colour(where(*ELEMENT).bank)
    title = f"tile ({ELEMENT[0] // TILE}, {ELEMENT[1] // TILE}): four {FACE} x {FACE} faces"
    out = [text(left, top - 12, title, 13, more='font-weight="bold"'), box(left, top, ZOOM, ZOOM, tint)]
    grid = "".join(f"M{left} {top + scale * k:g}h{ZOOM}M{left + scale * k:g} {top}v{ZOOM}" for k in range(1, TILE))
    out.append(path(grid, 'stroke="#ffffff" stroke-width="0.6"'))
    for i in range(TILE // FACE):
        for j in range(TILE // FACE):
            x, y = left + j * FACE * scale, top + i * FACE * scale
            out.append(box(x, y, FACE * scale, FACE * scale, "none", INK))
            first = tile(FACE * i, FACE * j)
            out.append(
                text(x + 8, y + FACE * scale - 12, f"face {faces(i, j)}, from {first}", 12, ON_COLOUR, halo(tint))
            )
    x, y = left + col * scale, top + row * scale
    out.append(box(left + col // FACE * FACE * scale, y, FACE * scale, scale, MARK, "none", 'opacity="0.25"'))
    out.append(box(x, y, scale, scale, MARK, MARK))
    out.append(text(left, top + ZOOM + 18, "row-major inside faces, faces row-major", 12, SOFT))
    return out


def draw_steps() -> list[str]:
    left, top = STEPS_AT
    row, col = ELEMENT
    place, offset = where(*ELEMENT), matrix(*ELEMENT)
    page, inside = divmod(offset, TILE * TILE)
    start, at = page // BANKS * PAGE, (row % FACE, col % FACE)
    first = inside - face(*at)
    if tile(row % TILE, col % TILE) != inside or place != page % BANKS @ bank + (start + ITEM * inside) @ addr:
        raise AssertionError(f"the steps do not lead to {place}")
    lines = [
        (1, f"element ({row}, {col})", []),
        (
            2,
            f"tile ({row // TILE}, {col // TILE})",
            [f"page {row // TILE} x {WIDTH_IN_TILES} + {col // TILE} = {page}"],
        ),
        (
            3,
            f"({row % TILE}, {col % TILE}) in the tile",
            [
                f"face {first // FACE**2}, row {at[0]}, column {at[1]}",
                f"{first} + {at[0]} x {FACE} + {at[1]} = {inside}",
            ],
        ),
        (4, f"bank {place.bank}", [f"{page} mod {BANKS} = {page % BANKS}"]),
        (5, f"address {place.addr}", [f"{start} + {ITEM} bytes x {inside}"]),
    ]
    out = []
    y = top + 9
    for number, main, small in lines:
        out += badge(left + 9, y, number)
        out.append(text(left + 26, y + 5, main, 14, more='font-weight="bold"'))
        out += [text(left + 26, y + 22 + 16 * k, line, 12, SOFT) for k, line in enumerate(small)]
        y += 33 + 16 * len(small)
    return out


def draw_banks() -> list[str]:
    left, top = BANKS_AT
    title = f"{TILES} pages of {PAGE} bytes, round-robin over {BANKS} banks"
    out = [text(28, top - 34, title, 13, more='font-weight="bold"')]
    for number in range(BANKS):
        label = f"bank {number}"
        weight = f'text-anchor="middle" font-weight="{"bold" if number == where(*ELEMENT).bank else "normal"}"'
        out.append(text(left + SLOT_WIDTH * (number + 0.5), top - 9, label, 12, more=weight))
    out.append(text(left - 10, top - 9, "address", 12, SOFT, 'text-anchor="end"'))
    for level in range(DEEP):
        y = top + SLOT_HEIGHT * (level + 0.64)
        out.append(text(left - 10, y, f"{level * PAGE}", 12, SOFT, 'text-anchor="end"'))
    for page in range(TILES):
        place = pages(TILE * TILE * page)
        x, y = left + SLOT_WIDTH * place.bank, top + SLOT_HEIGHT * (place.addr // PAGE)
        out.append(box(x, y, SLOT_WIDTH, SLOT_HEIGHT, colour(place.bank)))
        out.append(text(x + SLOT_WIDTH / 2, y + 22, f"page {page}", 12, ON_COLOUR, 'text-anchor="middle"'))
    return out


def draw_way() -> list[str]:
    """Return the line of the element from matrix to tile to bank, drawn over everything else."""
    place = where(*ELEMENT)
    scale, zoom = CELL / TILE, ZOOM / TILE
    i, j = ELEMENT[0] // TILE, ELEMENT[1] // TILE
    x0, y0 = MATRIX_AT[0] + CELL * j, MATRIX_AT[1] + CELL * i
    x, y = MATRIX_AT[0] + ELEMENT[1] * scale, MATRIX_AT[1] + ELEMENT[0] * scale
    zx, zy = ZOOM_AT[0] + (ELEMENT[1] % TILE + 0.5) * zoom, ZOOM_AT[1] + (ELEMENT[0] % TILE + 0.5) * zoom
    slot_x = BANKS_AT[0] + SLOT_WIDTH * place.bank
    slot_y = BANKS_AT[1] + SLOT_HEIGHT * (place.addr // PAGE)
    line = f'class="way" stroke="{MARK}" stroke-width="1.6"'
    out = [
        box(x0, y0, CELL, CELL, "none", MARK, 'stroke-width="2.5"'),
        path(f"M{x0 + CELL} {y0}L{ZOOM_AT[0]} {ZOOM_AT[1]}", f'{line} stroke-dasharray="4 3"'),
        path(f"M{x0 + CELL} {y0 + CELL}L{ZOOM_AT[0]} {ZOOM_AT[1] + ZOOM}", f'{line} stroke-dasharray="4 3"'),
        box(*ZOOM_AT, ZOOM, ZOOM, "none", MARK, 'stroke-width="2"'),
        f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="{MARK}" stroke="#ffffff"/>',
        box(slot_x, slot_y, SLOT_WIDTH, SLOT_HEIGHT, "none", MARK, 'stroke-width="2.5"'),
    ]
    out += badge(x - 15, y, 1) + badge(x0 + CELL, y0 + CELL, 2) + badge(zx + 16, zy + 16, 3)
    return out + badge(slot_x, slot_y + 4, 4) + badge(slot_x + SLOT_WIDTH, slot_y + SLOT_HEIGHT - 4, 5)


def picture() -> str:
    place = where(*ELEMENT)
    title = f"Element {ELEMENT} of a {ROWS} x {COLS} matrix lives in bank {place.bank} at address {place.addr}"
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 456" width="800" height="456" role="img"'
        f' font-family="sans-serif"><title>{title}</title>'
    )
    hatch = (
        '<defs><pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<rect width="6" height="6" fill="{PANEL}" fill-opacity="0.55"/>'
        f'<path d="M0 6L6 0" stroke="{SOFT}" stroke-width="0.8"/></pattern></defs>'
    )
    way = "<style>@media (prefers-color-scheme: dark){.way{stroke:#ff8a80}}</style>"
    panel = draw_frame(800, 456)
    parts = [draw_matrix(), draw_zoom(), draw_steps(), draw_banks(), draw_way()]
    return (
        "\n".join([head, dark_style(), way, hatch, panel, *(line for part in parts for line in part), "</svg>"]) + "\n"
    )


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "docs" / "images" / "where.svg"
    target.write_text(picture(), encoding="utf-8")
    print(f"wrote {target.name}: {ELEMENT} lives at {where(*ELEMENT)}")
