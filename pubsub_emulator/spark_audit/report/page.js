"use strict";
// One chain at a time: the others are there, out of sight. Without this script all of them are
// shown.
(() => {
  const chains = [...document.querySelectorAll(".chain")];
  const picker = document.querySelector("#pick");
  if (!picker || chains.length === 0) {
    return;
  }
  const show = (id) => {
    const wanted = chains.some((each) => each.id === id) ? id : chains[0].id;
    for (const each of chains) {
      each.hidden = each.id !== wanted;
    }
    picker.value = wanted;
  };
  picker.addEventListener("change", () => {
    history.replaceState(null, "", `#${picker.value}`);
    show(picker.value);
  });
  const named = () => location.hash.slice(1);
  window.addEventListener("hashchange", () => {
    if (!chains.some((each) => each.id === named())) {
      return;
    }
    show(named());
    document.getElementById(named()).scrollIntoView();
  });
  document.querySelector(".picker").hidden = false;
  show(named());
})();
