// The choice of chains in the time line: one chain, or a group of them.

// Fills a select and returns the groups, each with its name and chains.
export function offerChains(run, select) {
  const groups = [
    ["subscribers", run.chains.filter((chain) => chain.subscribes)],
    ["publishers", run.chains.filter((chain) => !chain.subscribes)],
    ["all", run.chains],
  ].filter(([, chains]) => chains.length);
  for (const [name, chains] of groups) {
    select.append(new Option(`${name} (${chains.length})`, name));
  }
  for (const chain of run.chains) {
    select.append(new Option(run.chainName(chain.id), chain.id));
  }
  return groups;
}
