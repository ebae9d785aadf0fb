//! Native tries, asked line by line: JSON in, JSON out. `bench/peer.py` races the emulator's tries against them.
//!
//!   {"entries": [[key, value], …]}                 kept for `root`, and made into a trie for `update` and `prove`
//!   {"updates": [[key, value], …]}                 kept for `update`
//!   {"root_hash": …, "nodes": […], "keys": […]}    kept for `read` and `prove`
//!   {"run": "root" | "update" | "prove" | "read"}  -> {"ms": CPU time of this process, "answer": root or count}

use cpu_time::ProcessTime;
use serde_json::{json, Value};
use sp_core::{Blake2Hasher, H256};
use sp_trie::{LayoutV1, MemoryDB, Recorder, StorageProof, Trie, TrieConfiguration, TrieDBBuilder, TrieDBMutBuilder, TrieMut};
use std::collections::BTreeSet;
use std::io::{BufRead, Write};

type Layout = LayoutV1<Blake2Hasher>;
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Default)]
struct Kept {
	entries: Entries,
	updates: Entries,
	trie: Option<(MemoryDB<Blake2Hasher>, H256)>,
	nodes: Vec<Vec<u8>>,
	keys: Vec<Vec<u8>>,
	root: H256,
}

fn raw(data: &Value) -> Vec<u8> {
	let text = data.as_str().expect("hexadecimal text");
	hex::decode(&text[2..]).expect("hexadecimal text")
}

fn list(data: &Value) -> Vec<Vec<u8>> {
	data.as_array().expect("a list").iter().map(raw).collect()
}

fn pairs(data: &Value) -> Entries {
	data.as_array().expect("a list").iter().map(|pair| (raw(&pair[0]), raw(&pair[1]))).collect()
}

fn build(entries: &Entries) -> (MemoryDB<Blake2Hasher>, H256) {
	let mut db = MemoryDB::<Blake2Hasher>::new(&[0]);
	let mut root = H256::default();
	{
		let mut trie = TrieDBMutBuilder::<Layout>::new(&mut db, &mut root).build();
		for (key, value) in entries {
			trie.insert(key, value).expect("in memory");
		}
	}
	(db, root)
}

impl Kept {
	fn take(&mut self, given: &Value) {
		if let Some(entries) = given.get("entries") {
			self.entries = pairs(entries);
			self.trie = None;
		}
		if let Some(updates) = given.get("updates") {
			self.updates = pairs(updates);
		}
		if let Some(keys) = given.get("keys") {
			self.keys = list(keys);
		}
		if let Some(nodes) = given.get("nodes") {
			self.nodes = list(nodes);
			self.root = H256::from_slice(&raw(&given["root_hash"]));
		}
	}

	/// The trie of the entries, built outside of what is timed.
	/// Each update after the first writes other values than the one before.
	fn prepare(&mut self, what: &str) {
		if self.trie.is_none() {
			self.trie = Some(build(&self.entries));
		} else if what == "update" {
			self.updates.iter_mut().for_each(|(_, value)| value[0] ^= 1);
		}
	}

	fn root(&self) -> Value {
		json!(format!("0x{}", hex::encode(Layout::trie_root(self.entries.iter().map(|(key, value)| (key, value))))))
	}

	/// Applies the updates to the trie, as one block does, and commits the new nodes to its database.
	fn update(&mut self) -> Value {
		let (db, root) = self.trie.as_mut().expect("prepared");
		{
			let mut trie = TrieDBMutBuilder::<Layout>::from_existing(db, root).build();
			for (key, value) in &self.updates {
				trie.insert(key, value).expect("in memory");
			}
		}
		json!(format!("0x{}", hex::encode(root)))
	}

	/// The nodes that reading the keys touches.
	fn prove(&self) -> Value {
		let (db, root) = self.trie.as_ref().expect("prepared");
		let mut recorder = Recorder::<Layout>::new();
		{
			let trie = TrieDBBuilder::<Layout>::new(db, root).with_recorder(&mut recorder).build();
			for key in &self.keys {
				trie.get(key).expect("every key is there");
			}
		}
		let nodes: BTreeSet<Vec<u8>> = recorder.drain().into_iter().map(|record| record.data).collect();
		json!(nodes.len())
	}

	/// Hashes the proof's nodes into a database and reads the keys.
	fn read(&self) -> Value {
		let db = StorageProof::new(self.nodes.iter().cloned()).into_memory_db::<Blake2Hasher>();
		let trie = TrieDBBuilder::<Layout>::new(&db, &self.root).build();
		json!(self.keys.iter().filter(|key| trie.get(key).expect("a whole proof").is_some()).count())
	}

	fn run(&mut self, what: &str) -> Value {
		if matches!(what, "update" | "prove") {
			self.prepare(what);
		}
		let start = ProcessTime::now();
		let answer = match what {
			"root" => self.root(),
			"update" => self.update(),
			"prove" => self.prove(),
			"read" => self.read(),
			other => panic!("no work is called {other}"),
		};
		json!({"ms": start.elapsed().as_secs_f64() * 1000.0, "answer": answer})
	}
}

fn main() {
	let mut kept = Kept::default();
	for line in std::io::stdin().lock().lines() {
		let given: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
		kept.take(&given);
		if let Some(what) = given.get("run").and_then(Value::as_str) {
			let answer = kept.run(what);
			let mut out = std::io::stdout().lock();
			writeln!(out, "{answer}").and_then(|()| out.flush()).expect("standard output");
		}
	}
}
