"use strict";
// Find and create elements of a page; content is inserted as text, never as markup.

const $ = (id) => document.getElementById(id);

function make(name, settings = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}
