// SPDX-License-Identifier: Apache-2.0
// Plays the frames of an animation: each frame has, for each panel, the paths that cover, connect and mark it.

/**
 * Let people play, pause and step through frames.
 *
 * pictures: the SVG elements of the panels; frames: for each frame, the paths of each panel; captions: their texts;
 * controls: the form with the button and the slider; seconds: the time from a frame to the next.
 */
export function play(pictures, frames, captions, controls, seconds) {
  const button = controls.querySelector("button");
  const slider = controls.querySelector("input");
  const caption = controls.querySelector("output");
  const layers = pictures.map((svg) => [...svg.querySelectorAll(".tw-cover, .tw-current-flows, .tw-current")]);
  let timer = null;

  function show(frame) {
    slider.value = frame;
    caption.textContent = captions[frame];
    slider.setAttribute("aria-valuetext", captions[frame]);
    frames[frame].forEach((paths, panel) => paths.forEach((path, k) => layers[panel][k].setAttribute("d", path)));
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  }

  function start() {
    if (Number(slider.value) === frames.length - 1) show(0);
    button.textContent = "Pause";
    timer = setInterval(() => {
      const next = Number(slider.value) + 1;
      if (next < frames.length) show(next);
      if (next >= frames.length - 1) pause();
    }, seconds * 1000);
  }

  button.addEventListener("click", () => (timer === null ? start() : pause()));
  slider.addEventListener("input", () => {
    pause();
    show(Number(slider.value));
  });
  show(frames.length - 1);
  // Nothing moves by itself for those who have asked their system for that.
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) start();
}
