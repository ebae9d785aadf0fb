//! Vectors of tries: roots, batches of changes, proofs with absences, child tries, tampered and compact proofs.

use crate::chain::{Entries, Read, Version, CHILD_PREFIX};
use crate::json::{bytes, bytes_list, entries, field, list, number, raw, text};
use crate::report::Report;
use codec::{Decode, Encode};
use serde_json::Value;
use sp_core::{Blake2Hasher, H256};
use sp_trie::MemoryDB;

/// `PublishedEntry`, as a publisher's child trie stores it.
#[derive(Encode, Decode, Debug, PartialEq, Eq)]
pub struct PublishedEntry {
	pub value: Vec<u8>,
	pub ttl: u32,
	pub when_inserted: u32,
}

/// A 32-byte hash in field `name`.
pub fn hash(data: &Value, name: &str) -> Result<H256, String> {
	let raw = bytes(data, name)?;
	<[u8; 32]>::try_from(raw.as_slice()).map(H256).map_err(|_| format!("{name}: {} bytes, a hash has 32", raw.len()))
}

fn expected(data: &Value) -> Result<Read, String> {
	let result = field(data, "result")?;
	if let Some(value) = result.get("value") {
		return Ok(Read::Value(raw(value)?));
	}
	Ok(if result.get("absent").is_some() { Read::Absent } else { Read::Error })
}

/// State roots of both layouts.
pub fn check_roots(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "vectors")? {
		let (name, entries) = (text(case, "name")?, entries(case, "entries")?);
		for (version, wanted) in [(Version::V0, "root_v0"), (Version::V1, "root_v1")] {
			report.equal(name, wanted, version.root(&entries), hash(case, wanted)?);
		}
	}
	Ok(())
}

/// The root after each batch of insertions and removals, by the trie that is changed in place.
pub fn check_operations(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "vectors")? {
		let name = text(case, "name")?;
		for (version, wanted) in [(Version::V0, "roots_after_batch_v0"), (Version::V1, "roots_after_batch_v1")] {
			let mut db = MemoryDB::<Blake2Hasher>::new(&[0]);
			let mut root = version.write(&mut db, &[]);
			for (at, (batch, said)) in list(case, "batches")?.iter().zip(bytes_list(case, wanted)?).enumerate() {
				let mut changes = Vec::new();
				for change in batch.as_array().ok_or("batches: not a list of lists")? {
					let value = &change[1];
					changes.push((raw(&change[0])?, if value.is_null() { None } else { Some(raw(value)?) }));
				}
				root = version.change(&mut db, root, &changes)?;
				report.bytes(name, &format!("{wanted}[{at}]"), root.as_bytes(), &said);
			}
			report.equal(name, "root of final_entries", version.root(&entries(case, "final_entries")?), root);
		}
	}
	Ok(())
}

fn reads(report: &mut Report, name: &str, found: &[Read], results: &[Value]) -> Result<(), String> {
	report.equal(name, "number of reads", found.len(), results.len());
	for (found, said) in found.iter().zip(results) {
		report.equal(name, text(said, "key")?, found.clone(), expected(said)?);
	}
	Ok(())
}

fn keys_of(results: &[Value]) -> Result<Vec<Vec<u8>>, String> {
	results.iter().map(|each| bytes(each, "key")).collect()
}

/// Read proofs: what they hold, what readers get, absences among it, and the compact form both ways.
pub fn check_proofs(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "vectors")? {
		let (name, version) = (text(case, "name")?, Version::of(number(case, "version")?)?);
		let (root, nodes, results) = (hash(case, "root")?, bytes_list(case, "proof_nodes")?, list(case, "results")?);
		let all = entries(case, "entries")?;
		report.equal(name, "root", version.root(&all), root);
		let keys = keys_of(results)?;
		let mut db = MemoryDB::<Blake2Hasher>::new(&[0]);
		let written = version.write(&mut db, &all);
		report.equal(name, "root of the trie in place", written, root);
		report.equal(name, "recorded nodes", hexes(&version.record(&db, root, &keys)?), hexes(&sorted(&nodes)));
		reads(report, name, &version.read(root, &nodes, &keys), results)?;
		compact(report, name, version, root, &nodes, &bytes_list(case, "compact_proof")?)?;
	}
	Ok(())
}

fn compact(report: &mut Report, name: &str, version: Version, root: H256, nodes: &[Vec<u8>], said: &[Vec<u8>]) -> Result<(), String> {
	report.equal(name, "compact proof", hexes(&version.compact(nodes, root)?), hexes(said));
	if root == version.root(&[]) {
		return Ok(()); // sp-trie's database does not list the node of an empty trie, which it always has
	}
	for (what, form) in [("nodes of the compact proof", said.to_vec()), ("nodes written once", version.compact_once(nodes, root)?)] {
		match version.expand(&form, root) {
			Err(error) => report.failure(name, what, &error),
			Ok(db) => {
				let mut found: Vec<Vec<u8>> = db.keys().into_keys().filter_map(|key| node(&db, key)).collect();
				found.sort();
				report.equal(name, what, hexes(&found), hexes(&sorted(nodes)));
			},
		}
	}
	Ok(())
}

fn node(db: &MemoryDB<Blake2Hasher>, key: H256) -> Option<Vec<u8>> {
	use sp_trie::{HashDBT, EMPTY_PREFIX};
	HashDBT::get(db, &key, EMPTY_PREFIX)
}

fn hexes(nodes: &[Vec<u8>]) -> Vec<String> {
	nodes.iter().map(hex::encode).collect()
}

fn sorted(nodes: &[Vec<u8>]) -> Vec<Vec<u8>> {
	let mut nodes = nodes.to_vec();
	nodes.sort();
	nodes.dedup();
	nodes
}

/// Child tries below a top trie, and proofs that reach into both.
pub fn check_children(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "vectors")? {
		let (name, version) = (text(case, "name")?, Version::of(number(case, "version")?)?);
		let mut top = entries(case, "top_entries")?;
		for child in list(case, "children")? {
			let key = bytes(child, "storage_key")?;
			let root = version.root(&entries(child, "entries")?);
			let said = list(case, "child_roots")?.iter().find(|each| bytes(each, "storage_key").as_ref() == Ok(&key));
			report.equal(name, &hex::encode(&key), root, hash(said.ok_or("child_roots: a child is missing")?, "root")?);
			if !list(child, "entries")?.is_empty() {
				top.push(([CHILD_PREFIX, &key].concat(), root.as_bytes().to_vec()));
			}
		}
		combined(case, report, name, version, &top)?;
	}
	Ok(())
}

/// Publishers' child tries below a top trie like the relay chain's, and proofs that reach into both.
pub fn check_pubsub(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "vectors")? {
		let (name, version) = (text(case, "name")?, Version::of(number(case, "version")?)?);
		let mut top = entries(case, "relay_top_entries")?;
		for publisher in list(case, "publishers")? {
			top.push(publisher_root(publisher, report, name, version)?);
		}
		combined(case, report, name, version, &top)?;
	}
	Ok(())
}

/// Publishers alone: child storage keys, entries and child roots.
pub fn check_publishers(data: &Value, report: &mut Report) -> Result<(), String> {
	for publisher in list(data, "publishers")? {
		let name = format!("publisher {}", number(publisher, "para_id")?);
		publisher_root(publisher, report, &name, Version::V1)?;
	}
	Ok(())
}

fn publisher_root(publisher: &Value, report: &mut Report, name: &str, version: Version) -> Result<(Vec<u8>, Vec<u8>), String> {
	let para = u32::try_from(number(publisher, "para_id")?).map_err(|_| "para_id: more than u32")?;
	let key = (*b"pubsub", para).encode();
	report.bytes(name, "child_storage_key", &key, &bytes(publisher, "child_storage_key")?);
	let top_key = [CHILD_PREFIX, &key].concat();
	report.bytes(name, "top_key", &top_key, &bytes(publisher, "top_key")?);
	let mut items = Entries::new();
	for item in list(publisher, "items")? {
		let narrow = |field: &str| u32::try_from(number(item, field)?).map_err(|_| format!("{field}: more than u32"));
		let entry =
			PublishedEntry { value: bytes(item, "value")?, ttl: narrow("ttl")?, when_inserted: narrow("when_inserted")? };
		report.bytes(name, "encoded", &entry.encode(), &bytes(item, "encoded")?);
		items.push((bytes(item, "key")?, entry.encode()));
	}
	let root = version.root(&items);
	report.equal(name, "child_root", root, hash(publisher, "child_root")?);
	Ok((top_key, root.as_bytes().to_vec()))
}

fn combined(case: &Value, report: &mut Report, name: &str, version: Version, top: &Entries) -> Result<(), String> {
	let root = hash(case, "root")?;
	report.equal(name, "root", version.root(top), root);
	let nodes = bytes_list(case, "proof_nodes")?;
	let results = list(case, "top_results")?;
	reads(report, name, &version.read(root, &nodes, &keys_of(results)?), results)?;
	for result in list(case, "child_results")? {
		let storage_key = match result.get("storage_key") {
			Some(key) => raw(key)?,
			None => (*b"pubsub", u32::try_from(number(result, "para_id")?).map_err(|_| "para_id: more than u32")?).encode(),
		};
		let child = version.read(root, &nodes, &[[CHILD_PREFIX, &storage_key].concat()]);
		let found = match child.as_slice() {
			[Read::Value(raw)] if raw.len() == 32 => {
				version.read(H256::from_slice(raw), &nodes, &[bytes(result, "key")?]).remove(0)
			},
			[Read::Absent] => Read::Absent,
			_ => Read::Error,
		};
		report.equal(name, text(result, "key")?, found, expected(result)?);
	}
	Ok(())
}

/// Proofs that somebody tampered with.
pub fn check_negative(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "vectors")? {
		let (name, version) = (text(case, "name")?, Version::of(number(case, "version")?)?);
		let root = hash(case, "root")?;
		if case.get("compact_proof").is_some() {
			let found = version.expand(&bytes_list(case, "compact_proof")?, root);
			let said = field(case, "expect")?.get("error").and_then(Value::as_str);
			let kind = found.err().map(|error| error.split(['(', ' ', '{']).next().unwrap_or_default().to_owned());
			report.equal(name, "outcome", kind.as_deref(), said);
			continue;
		}
		let nodes = bytes_list(case, "nodes")?;
		report.equal(name, "root_present", Some(Version::has_root(&nodes, root)), case["root_present"].as_bool());
		let results = list(case, "reads")?;
		reads(report, name, &version.read(root, &nodes, &keys_of(results)?), results)?;
	}
	Ok(())
}
