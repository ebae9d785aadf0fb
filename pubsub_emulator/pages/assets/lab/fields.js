// The fields of a form: what can be chosen in them, and how they are drawn.

import { html } from "../html.js";
import { signal } from "../vendor/signals.js";
import { chains, setting } from "./state.js";

export const strategies = signal([]);

export function choices(field) {
  const known = setting.value;
  const all = chains.value.map((chain) => chain.para);
  if (field.kind === "publisher") {
    return known ? [...new Set([...known.publishers.map((each) => each.para), ...all])] : [];
  }
  if (field.kind === "subscriber") {
    return known ? known.parachains.filter((each) => !each.onDemand).map((each) => each.para) : [];
  }
  if (field.kind === "chain") {
    return all;
  }
  if (field.kind === "strategy") {
    return strategies.value.map((each) => each.name);
  }
  return field.choices;
}

export function entry(field, value, put) {
  const options = choices(field);
  const told = (event) => put(event.target.value);
  if (options) {
    return html`
      <select name=${field.name} value=${String(value)} onChange=${told}>
        ${options.map(
          (each) => html`
            <option value=${String(each)}>${each}</option>
          `,
        )}
      </select>
    `;
  }
  return html`
    <input
      name=${field.name}
      value=${value}
      inputmode=${field.kind === "number" ? "numeric" : "text"}
      autocomplete="off"
      spellcheck="false"
      placeholder=${field.hint || ""}
      onInput=${told}
    />
  `;
}
