// Runs scenarios one after the other and writes what became of each as one line of JSON:
// { scenario, ok, ms, detail }. Scenarios are the exports of a module, called with the node's URL;
// a name may be left out by `only`. A client that is left while it still asks for something throws
// where nobody can catch it; the scenario has ended then.
process.on("uncaughtException", (error) => console.error(String(error)));

const PATIENCE = 180_000;

export async function run(scenarios, url, only) {
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (only.length && !only.includes(name)) {
      continue;
    }
    const began = performance.now();
    let ok = true;
    let detail = null;
    try {
      detail = (await withTimeout(scenario(url), PATIENCE)) ?? null;
    } catch (error) {
      ok = false;
      detail = String(error?.stack ?? error).slice(0, 2000);
    }
    console.log(
      JSON.stringify({ scenario: name, ok, ms: Math.round(performance.now() - began), detail }),
    );
  }
  process.exit(0);
}

function withTimeout(work, ms) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not done in ${ms} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
