// The head of a page: its name, a line of figures, and the button for dark or light.

import { html } from "./html.js";
import { switchTheme } from "./theme.js";

export function Head({ title, children }) {
  return html`
    <div class="head">
      <div class="name">
        <h1>${title}</h1>
        <p id="figures">${children}</p>
      </div>
      <button id="theme" type="button" aria-label="Dark or light" onClick=${switchTheme}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.6" />
          <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
        </svg>
      </button>
    </div>
  `;
}
