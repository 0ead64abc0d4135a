// SPDX-License-Identifier: Apache-2.0
// Keeps the playground in this browser. Its address names the version: what is in the folder of that name never changes and
// comes from here; the page itself comes from its server whenever there is one.

const VERSION = new URL(location).search.slice(1);
const FOLDER = new URL(`${VERSION}/`, location).href;
const HOME = new URL("./", location).href;

async function keep() {
  const cache = await caches.open(VERSION);
  const { files } = await (await fetch(`${FOLDER}files.json`)).json();
  await cache.addAll(files.map((name) => FOLDER + name));
  const home = await fetch(HOME, { cache: "no-cache" });
  if (!(await home.clone().text()).includes(VERSION)) throw new Error("there is a newer page already");
  await cache.put(HOME, home);
  await self.skipWaiting();
}

async function dropOthers() {
  for (const name of await caches.keys()) if (name !== VERSION) await caches.delete(name);
  await self.clients.claim();
}

async function kept(request) {
  const cache = await caches.open(VERSION);
  const found = await cache.match(request);
  if (found) return found;
  const reply = await fetch(request);
  if (reply.ok) await cache.put(request, reply.clone());
  return reply;
}

async function newest(request) {
  try {
    return await fetch(request.url, { cache: "no-cache" });
  } catch (problem) {
    const found = await (await caches.open(VERSION)).match(HOME);
    if (found) return found;
    throw problem;
  }
}

self.addEventListener("install", (event) => event.waitUntil(keep()));
self.addEventListener("activate", (event) => event.waitUntil(dropOthers()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.url.startsWith(FOLDER)) event.respondWith(kept(request));
  else if (request.mode === "navigate") event.respondWith(newest(request));
});
