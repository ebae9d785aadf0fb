// One chain at a time: the others are there, out of sight. Without this script all of them are
// shown, and the colours are those of the reader's system.

import { switchTheme } from "../theme.js";

const chains = [...document.querySelectorAll(".chain")];
const picker = document.getElementById("pick");

function show(id) {
  const wanted = chains.some((each) => each.id === id) ? id : chains[0].id;
  for (const each of chains) {
    each.hidden = each.id !== wanted;
  }
  picker.value = wanted;
}

function named() {
  return location.hash.slice(1);
}

if (picker && chains.length) {
  picker.addEventListener("change", () => {
    history.replaceState(null, "", `#${picker.value}`);
    show(picker.value);
  });
  window.addEventListener("hashchange", () => {
    if (!chains.some((each) => each.id === named())) {
      return;
    }
    show(named());
    document.getElementById(named()).scrollIntoView();
  });
  document.querySelector(".picker").hidden = false;
  show(named());
}
const button = document.getElementById("theme");
button.hidden = false;
button.addEventListener("click", switchTheme);
