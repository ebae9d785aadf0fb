// All acts so far as a session: a file for `pubsub step`, a scenario, Python, and one HTML file to
// share.

import { html, useEffect, useState } from "../html.js";
import { Copied } from "./glossary.js";
import { call } from "./rpc.js";
import { best, names, say, version } from "./state.js";
import { valueWords } from "./texts.js";

export function Session() {
  const [held, setHeld] = useState(null);
  const told = version.value;
  useEffect(() => {
    const soon = setTimeout(
      () => call("pubsub_session").then(setHeld, (error) => setHeld({ why: error.message })),
      150,
    );
    return () => clearTimeout(soon);
  }, [told]);
  if (!held) {
    return html`<p class="hint">Asking for the session …</p>`;
  }
  if (held.why) {
    return html`<p class="hint">No session can be saved: ${held.why}</p>`;
  }
  const name = held.scenario.name;
  return html`
    <div class="session" data-block=${held.block}>
      <p class="saves">
        <button type="button" onClick=${() => save(`${name}.json`, asFile)}>
          Save for pubsub step
        </button>
        <button type="button" onClick=${() => save(`${name}.toml`, asScenario)}>
          as a scenario
        </button>
        <button type="button" onClick=${() => save(`${name}.py`, asPython)}>
          as Python
        </button>
        <button type="button" onClick=${() => save(`${name}.html`, asPage)}>
          as one page to share
        </button>
      </p>
      <${Copied} label="go on from it in a terminal" text=${`pubsub step ${name}.json`} />
      <${Copied}
        label="its history, to be audited"
        text=${`pubsub run ${name}.json --out out/${name}`}
      />
      <p class="hint">
        ${held.commands.length} lines lead to relay block ${held.block}:
      </p>
      <div class="scroll tall" tabindex="0" role="region" aria-label="Lines of the session">
        <ol class="lines">
          ${held.commands.slice(-200).map(
            (line) => html`
              <li>${line.length > 160 ? `${line.slice(0, 160)}…` : line}</li>
            `,
          )}
        </ol>
      </div>
    </div>
  `;
}

async function save(name, make) {
  try {
    const content = await make(await call("pubsub_session"));
    const place = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
    const link = document.createElement("a");
    link.href = place;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(place), 10_000);
    say(`saved ${name}, relay block ${best.value}`);
  } catch (error) {
    say(`not saved: ${error.message}`);
  }
}

const asFile = (session) => `${JSON.stringify(session, null, 1)}\n`;

function asPython(session) {
  return [
    '"""Plays a session of the lab again and checks that it leads to the same block."""',
    "",
    "import json",
    "",
    "from pubsub_emulator.cli.screen import show_all",
    "from pubsub_emulator.session import Session",
    "from pubsub_emulator.emulator.scenario.file import parse_document",
    "",
    `SESSION = json.loads(${JSON.stringify(JSON.stringify(session))})`,
    "",
    'scenario = parse_document(SESSION["scenario"], "the lab")',
    'session = Session.of(scenario, accounts=SESSION.get("accounts", False))',
    'for line in SESSION["commands"]:',
    "    show_all(session.execute(line))",
    'assert f"0x{session.newest(\'relay\').hex()}" == SESSION["hash"], "another block"',
    "",
  ].join("\n");
}

// TOML, a line each publisher, subscriber and block with acts; what no scenario has a field for is
// in comments.
async function asScenario() {
  const [scenario, said] = await call("pubsub_sessionScenario");
  const lines = Object.entries(scenario).map(([name, value]) => {
    const rows = Array.isArray(value) && value.map((each) => `  ${toml(each)},\n`).join("");
    return `${name} = ${Array.isArray(value) ? `[\n${rows}]` : toml(value)}`;
  });
  return [...said.map((each) => `# ${each}`), ...lines, ""].join("\n");
}

function toml(value, name) {
  if (Array.isArray(value)) {
    return `[${value
      .filter((each) => each !== null)
      .map((each) => toml(each, name))
      .join(", ")}]`; // a removed key has no value
  }
  if (value && typeof value === "object") {
    return `{ ${Object.entries(value)
      .map(([key, each]) => `${key} = ${toml(each, key)}`)
      .join(", ")} }`;
  }
  const known = legible(value, name);
  return JSON.stringify(/^(?!0x)[ -~]+$/.test(known) ? known : value);
}

// A key's name, or a value's text; empty for other fields.
function legible(value, field) {
  if (field === "key" || field === "keys") {
    return names.get(value) ?? "";
  }
  if (field === "value" && typeof value === "string") {
    return valueWords(value).replace(/^"(.*)"$/, "$1");
  }
  return "";
}

// The page of a run, with the session's file inside.
async function asPage(session) {
  const page = await (await fetch("/explorer")).text();
  const inside = JSON.stringify(session).replace(/</g, "\\u003c");
  const told = session.commands
    .map((line) => line.replace(/[&<>]/g, (each) => `&#${each.charCodeAt(0)};`))
    .join("\n");
  const title = `The session that led here: ${session.commands.length} lines of pubsub step`;
  const fold = `<details><summary>${title}</summary><pre class="bytes">${told}</pre></details>`;
  return page.replace(
    "<footer>",
    () => `${fold}<script type="application/json" id="session">${inside}</script><footer>`,
  );
}
