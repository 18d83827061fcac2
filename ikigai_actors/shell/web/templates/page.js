"use strict";

// The terminal has the keyboard as soon as it is drawn, and again when one comes back to the page.
function takeKeyboard() {
  if (!document.body.matches(".-closed")) document.querySelector("textarea.xterm-helper-textarea")?.focus();
}

// textual.js makes the connection, and passes over the message with the title, which the server adds.
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => {
      if (typeof data !== "string") return;
      const [what, title] = JSON.parse(data);
      if (what === "title") document.title = title;
    });
  }
};

new MutationObserver(takeKeyboard).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", takeKeyboard);
takeKeyboard();
