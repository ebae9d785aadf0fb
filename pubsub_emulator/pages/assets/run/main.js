// The page: one block is chosen; keys, clicks, search and the address choose another.

import { Run } from "../block/run.js";
import { Head } from "../head.js";
import { html, render } from "../html.js";
import { deliveries } from "../parts.js";
import { counted } from "../words.js";
import { CandidateView } from "./candidate.js";
import { offerChains } from "./chains.js";
import { part, records } from "./records.js";
import { RelayView } from "./relay.js";
import { Results } from "./results.js";
import { search, searchNodes } from "./search.js";
import { RunTimeline } from "./timeline.js";

(async () => {
  const index = await part("index");
  const run = new Run(index, records(index));
  const box = (id) => document.getElementById(id);
  let here = null;

  const refused = run.candidates.filter((block) => block.verdict);
  const delivered = run.candidates.reduce((sum, block) => sum + block.keys.length, 0);
  const figures =
    `${counted(run.built, "relay block")}, ${counted(run.candidates.length, "candidate")},` +
    ` ${refused.length.toLocaleString("en")} refused, ${deliveries(delivered)}.`;
  render(html`<${Head} title=${run.title}>${run.description} ${figures}</${Head}>`, box("head"));

  const timeline = new RunTimeline(run, box("timeline"), go);
  const results = new Results(box("results"), choose);
  const groups = offerChains(run, box("chain"));
  box("chain").addEventListener("change", () => {
    const chains = shownChains();
    timeline.show(chains);
    const block = run.candidate(here);
    if (block && !chains.includes(block.chain)) {
      timeline.goNearest(chains[0], block.relay);
    } else {
      timeline.select(here);
    }
  });
  timeline.show(shownChains());

  box("refused").addEventListener("click", nextRefused);
  box("search").addEventListener("input", find);
  box("search").addEventListener("keydown", searchKey);
  document.addEventListener("keydown", key);
  window.addEventListener("hashchange", () => go(location.hash.slice(1)));
  document.documentElement.dataset.ready = "yes";
  const named = location.hash.slice(1);
  go(run.has(named) ? named : start());

  // The block that is shown first: a delivery, if there is one.
  function start() {
    const [first] = run.candidates;
    const news = run.candidates.find((block) => block.chain.subscribes && block.keys.length);
    if (first) {
      return `c${(news || first).at}`;
    }
    return run.relay.length ? `r${run.relay[0].number}` : "";
  }

  function shownChains() {
    const value = box("chain").value;
    const group = groups.find(([name]) => name === value);
    return group ? group[1] : run.chains.filter((chain) => String(chain.id) === value);
  }

  // Shows a block by its name.
  async function go(name) {
    if (!run.has(name) || name === here) {
      return;
    }
    here = name;
    const block = run.candidate(name);
    if (block && !timeline.chains.includes(block.chain)) {
      box("chain").value = groups.find(([, chains]) => chains.includes(block.chain))[0];
      timeline.show(shownChains());
      timeline.light(lit());
    }
    timeline.select(name);
    history.replaceState(null, "", `#${name}`);
    const relay = run.relayAt.get(Number(name.slice(1)));
    const detail = block ? await run.source.detail(block) : await run.source.relayDetail(relay);
    if (here !== name) {
      return;
    }
    const View = block ? CandidateView : RelayView;
    render(
      html`<${View} key=${name} run=${run} block=${block || relay} detail=${detail} go=${go} />`,
      box("detail"),
    );
    box("said").textContent = box("detail").querySelector("h2").textContent;
  }

  function nextRefused() {
    const shown = timeline.chains;
    const from = run.candidate(here)?.at ?? -1;
    const next = refused.filter((block) => shown.includes(block.chain));
    const found = next.find((block) => block.at > from) || next[0];
    if (found) {
      go(`c${found.at}`);
    }
  }

  function key(event) {
    if (
      event.defaultPrevented || // the time line has taken it
      event.altKey ||
      event.ctrlKey ||
      event.metaKey ||
      /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
    ) {
      return;
    }
    const act = {
      "/": () => box("search").focus(),
      x: nextRefused,
      ArrowLeft: () => timeline.move(event.key),
      ArrowRight: () => timeline.move(event.key),
    }[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  }

  function lit() {
    const found = search(run, box("search").value);
    return found?.lit.length ? found.lit : null;
  }

  async function find() {
    const text = box("search").value;
    const found = search(run, text);
    timeline.light(found?.lit.length ? found.lit : null);
    results.show(found ? found.lines : null);
    if (!found || found.lines.length) {
      return;
    }
    const deep = await searchNodes(run, text, () => box("search").value === text);
    if (box("search").value === text && deep.length) {
      timeline.light(deep.map((line) => line.name));
      results.show(deep);
    }
  }

  function choose(line) {
    if (line.chain !== undefined) {
      box("chain").value = String(line.chain);
      timeline.show(shownChains());
    }
    results.hide();
    if (line.name) {
      go(line.name);
    }
  }

  function searchKey(event) {
    if (event.key === "Escape") {
      box("search").value = "";
      find();
      box("search").blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      results.move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      results.open();
    }
  }
})();
