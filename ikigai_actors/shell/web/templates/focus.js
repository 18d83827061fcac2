"use strict";

// The terminal has the keyboard as soon as it is drawn, and again when one comes back to the page.
function takeKeyboard() {
  if (!document.body.matches(".-closed")) document.querySelector("textarea.xterm-helper-textarea")?.focus();
}

new MutationObserver(takeKeyboard).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", takeKeyboard);
takeKeyboard();
