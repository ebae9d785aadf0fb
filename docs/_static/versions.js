// Lists the documentation of other versions below the version of this one. The sites of all
// versions are folders beside each other, and `versions.json` beside the folders names them:
//
//     ["0.4.0", "0.3.0"]
//
// A site that stands alone, or is opened from a folder, shows its own version only.

async function showVersions() {
  const place = document.querySelector("nav.versions");
  const root = document.documentElement.dataset.content_root;
  if (!place || root === undefined || !location.protocol.startsWith("http")) {
    return;
  }
  const sites = new URL(`${root}../`, location.href);
  const answer = await fetch(new URL("versions.json", sites));
  if (!answer.ok) {
    return;
  }
  const list = place.querySelector("ul");
  for (const version of await answer.json()) {
    if (version === place.dataset.version) {
      continue;
    }
    const link = document.createElement("a");
    link.className = "reference internal";
    link.href = new URL(`${encodeURIComponent(version)}/index.html`, sites).href;
    link.textContent = version;
    const entry = document.createElement("li");
    entry.className = "toctree-l1";
    entry.append(link);
    list.append(entry);
  }
  list.hidden = list.children.length === 0;
}

showVersions();
