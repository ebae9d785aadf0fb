//! `replay --tries`: the answers of sp-trie and trie-db about proofs and tries, for `interop/tries.py`.
//!
//! One question per line on standard input: a JSON object with `op`, `root` and `version`, and what the question needs.
//! One answer per line on standard output: `{"ok": …}`, or `{"error": …}` with the name of the error.

use crate::chain::Version;
use crate::json::{bytes_list, list, number, raw, text};
use crate::tries::hash;
use serde_json::{json, Value};
use sp_core::{Blake2Hasher, H256};
use sp_trie::{LayoutV0, LayoutV1, MemoryDB, StorageProof};
use std::io::{BufRead, Write};

/// Keys with the value that each has or gets. `None`: it has none.
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn changes(data: &Value, name: &str) -> Result<Changes, String> {
	let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
		Some([key, Value::Null]) => Ok((raw(key)?, None)),
		Some([key, value]) => Ok((raw(key)?, Some(raw(value)?))),
		_ => Err(format!("{name}: not a list of pairs")),
	};
	list(data, name)?.iter().map(pair).collect()
}

fn texts(nodes: impl IntoIterator<Item = Vec<u8>>) -> Value {
	nodes.into_iter().map(|node| format!("0x{}", hex::encode(node))).collect()
}

/// The name of an error's variant, without its fields.
fn named(error: impl std::fmt::Debug) -> String {
	format!("{error:?}").split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
}

fn database(nodes: Vec<Vec<u8>>) -> MemoryDB<Blake2Hasher> {
	StorageProof::new(nodes).into_memory_db::<Blake2Hasher>()
}

fn held(db: &mut MemoryDB<Blake2Hasher>) -> Vec<Vec<u8>> {
	let mut nodes: Vec<Vec<u8>> =
		db.drain().into_values().filter(|(_, references)| *references > 0).map(|(node, _)| node).collect();
	nodes.sort();
	nodes
}

/// `verify_proof`: whether the trie has these values, by a proof without them.
fn verify(data: &Value, root: H256, version: Version) -> Result<Value, String> {
	let (proof, items) = (bytes_list(data, "proof")?, changes(data, "items")?);
	let found = match version {
		Version::V0 => sp_trie::verify_trie_proof::<LayoutV0<Blake2Hasher>, _, _, _>(&root, &proof, items.iter()).map_err(named),
		Version::V1 => sp_trie::verify_trie_proof::<LayoutV1<Blake2Hasher>, _, _, _>(&root, &proof, items.iter()).map_err(named),
	};
	found.map(|()| Value::Bool(true))
}

/// `generate_trie_proof`: the proof of some keys without their values.
fn generate(data: &Value, root: H256, version: Version) -> Result<Value, String> {
	let (db, keys) = (database(bytes_list(data, "nodes")?), bytes_list(data, "keys")?);
	let made = match version {
		Version::V0 => sp_trie::generate_trie_proof::<LayoutV0<Blake2Hasher>, _, _, _>(&db, root, keys.iter()).map_err(named),
		Version::V1 => sp_trie::generate_trie_proof::<LayoutV1<Blake2Hasher>, _, _, _>(&db, root, keys.iter()).map_err(named),
	};
	made.map(texts)
}

fn answer(data: &Value) -> Result<Value, String> {
	let (root, version) = (hash(data, "root")?, Version::of(number(data, "version")?)?);
	match text(data, "op")? {
		"verify" => verify(data, root, version),
		"generate" => generate(data, root, version),
		"compact" => {
			let nodes = bytes_list(data, "nodes")?;
			Ok(json!({"once": texts(version.compact_once(&nodes, root)?)}))
		},
		// trie-db's older form of one trie; sp-trie wrote one after the other.
		"repeated" => Ok(texts(version.compact(&bytes_list(data, "nodes")?, root)?)),
		"expand" => {
			let mut db = version.expand(&bytes_list(data, "items")?, root).map_err(named)?;
			Ok(texts(held(&mut db)))
		},
		"write" => {
			let mut db = database(bytes_list(data, "nodes")?);
			let root = version.change(&mut db, root, &changes(data, "changes")?).map_err(named)?;
			Ok(json!({"root": format!("0x{}", hex::encode(root)), "nodes": texts(held(&mut db))}))
		},
		"record" => {
			let db = database(bytes_list(data, "nodes")?);
			version.record(&db, root, &bytes_list(data, "keys")?).map_err(named).map(texts)
		},
		other => Err(format!("no question is called {other:?}")),
	}
}

/// Answers every question until the input ends.
pub fn serve() -> Result<(), String> {
	std::panic::set_hook(Box::new(|_| {}));
	let mut out = std::io::BufWriter::new(std::io::stdout().lock());
	for line in std::io::stdin().lock().lines() {
		let line = line.map_err(|error| error.to_string())?;
		let data: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
		let found = std::panic::catch_unwind(|| answer(&data)).unwrap_or_else(|_| Err("Panic".into()));
		let said = match found {
			Ok(found) => json!({"ok": found}),
			Err(error) => json!({"error": error}),
		};
		writeln!(out, "{said}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
	}
	Ok(())
}
