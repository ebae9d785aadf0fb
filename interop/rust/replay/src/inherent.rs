//! `replay --inherent`: the first extrinsic of a parachain block and the request of its runtime, decoded and encoded again.
//!
//! One value per line on standard input: its kind and its bytes in hexadecimal digits with `0x`. One answer per line on
//! standard output: a JSON object with `again`, the bytes of the decoded value, and `fields`, or with `error`.
//!
//! The kinds are `data` (`BasicParachainInherentData`), `messages` (`InboundMessagesData`), `request`
//! (`RelayProofRequest`), and `call`: `set_validation_data` with its two indices.
//!
//! The types are those of `cumulus-pallet-parachain-system` and `cumulus-primitives-core` of 2026, field by field. The
//! crates themselves need the whole of FRAME, which takes longer to build than all of this program.

use crate::chain::Header;
use crate::json::raw;
use codec::{Decode, DecodeAll, Encode};
use serde_json::{json, Value};
use sp_core::{bounded::BoundedVec, ConstU32, H256};
use sp_trie::StorageProof;
use std::io::{BufRead, Write};

/// What the relay chain says about the parachain's next block.
#[derive(Encode, Decode, Debug, PartialEq)]
struct PersistedValidationData {
	parent_head: Vec<u8>,
	relay_parent_number: u32,
	relay_parent_storage_root: H256,
	max_pov_size: u32,
}

#[derive(Encode, Decode, Debug, PartialEq)]
struct BasicParachainInherentData {
	validation_data: PersistedValidationData,
	relay_chain_state: StorageProof,
	relay_parent_descendants: Vec<Header>,
	collator_peer_id: Option<BoundedVec<u8, ConstU32<64>>>,
}

#[derive(Encode, Decode, Debug, PartialEq)]
struct InboundDownwardMessage {
	sent_at: u32,
	msg: Vec<u8>,
}

#[derive(Encode, Decode, Debug, PartialEq)]
struct InboundHrmpMessage {
	sent_at: u32,
	data: Vec<u8>,
}

/// A message of which only the hash is in the block.
#[derive(Encode, Decode, Debug, PartialEq)]
struct HashedMessage {
	sent_at: u32,
	msg_hash: H256,
}

/// The messages of one kind: whole ones, then the hashes of those that did not fit.
#[derive(Encode, Decode, Debug, PartialEq)]
struct Abridged<Full, Hashed> {
	full_messages: Vec<Full>,
	hashed_messages: Vec<Hashed>,
}

#[derive(Encode, Decode, Debug, PartialEq)]
struct InboundMessagesData {
	downward_messages: Abridged<InboundDownwardMessage, HashedMessage>,
	/// With the parachain that sent each.
	horizontal_messages: Abridged<(u32, InboundHrmpMessage), (u32, HashedMessage)>,
}

/// `ParachainSystem::set_validation_data`, after the indices of the pallet and the call.
#[derive(Encode, Decode, Debug, PartialEq)]
struct SetValidationData {
	indices: [u8; 2],
	data: BasicParachainInherentData,
	inbound_messages_data: InboundMessagesData,
}

/// A storage value of the relay chain.
#[derive(Encode, Decode, Debug, PartialEq)]
enum RelayStorageKey {
	#[codec(index = 0)]
	Top(Vec<u8>),
	/// The child trie's name has no prefix.
	#[codec(index = 1)]
	Child { storage_key: Vec<u8>, key: Vec<u8> },
}

#[derive(Encode, Decode, Debug, PartialEq)]
struct RelayProofRequest {
	keys: Vec<RelayStorageKey>,
}

fn digits(bytes: impl AsRef<[u8]>) -> Value {
	format!("0x{}", hex::encode(bytes)).into()
}

fn of_data(data: &BasicParachainInherentData) -> Value {
	let known = &data.validation_data;
	json!({
		"parent_head": digits(&known.parent_head),
		"relay_parent_number": known.relay_parent_number,
		"relay_parent_storage_root": digits(known.relay_parent_storage_root),
		"max_pov_size": known.max_pov_size,
		"trie_nodes": data.relay_chain_state.iter_nodes().map(digits).collect::<Vec<_>>(),
		"descendants": data.relay_parent_descendants.iter().map(|header| digits(header.hash())).collect::<Vec<_>>(),
		"collator_peer_id": data.collator_peer_id.as_ref().map(digits),
	})
}

fn of_messages(data: &InboundMessagesData) -> Value {
	let downward = &data.downward_messages;
	let horizontal = &data.horizontal_messages;
	json!({
		"downward": downward.full_messages.iter().map(|sent| json!([sent.sent_at, digits(&sent.msg)])).collect::<Vec<_>>(),
		"downward_hashed": downward.hashed_messages.iter().map(|sent| json!([sent.sent_at, digits(sent.msg_hash)])).collect::<Vec<_>>(),
		"horizontal": horizontal.full_messages.iter().map(|(sender, sent)| json!([sender, sent.sent_at, digits(&sent.data)])).collect::<Vec<_>>(),
		"horizontal_hashed": horizontal.hashed_messages.iter().map(|(sender, sent)| json!([sender, sent.sent_at, digits(sent.msg_hash)])).collect::<Vec<_>>(),
	})
}

fn of_key(key: &RelayStorageKey) -> Value {
	match key {
		RelayStorageKey::Top(key) => json!({"top": digits(key)}),
		RelayStorageKey::Child { storage_key, key } => json!({"child": digits(storage_key), "key": digits(key)}),
	}
}

/// Decodes all of `bytes` as `T`, and shows it with `fields`.
fn read<T: Decode + Encode>(bytes: &[u8], fields: impl Fn(&T) -> Value) -> Result<Value, String> {
	let found = T::decode_all(&mut &bytes[..]).map_err(|error| error.to_string())?;
	Ok(json!({"again": digits(found.encode()), "fields": fields(&found)}))
}

fn answer(line: &str) -> Result<Value, String> {
	let (kind, bytes) = line.trim().split_once(' ').ok_or("a line has a kind and bytes")?;
	let bytes = raw(&bytes.trim().into())?;
	match kind {
		"data" => read(&bytes, of_data),
		"messages" => read(&bytes, of_messages),
		"call" => read(&bytes, |call: &SetValidationData| {
			json!({"indices": call.indices, "data": of_data(&call.data), "messages": of_messages(&call.inbound_messages_data)})
		}),
		"request" => read(&bytes, |request: &RelayProofRequest| request.keys.iter().map(of_key).collect()),
		other => Err(format!("no kind is called {other:?}")),
	}
}

/// Answers every line until the input ends.
pub fn serve() -> Result<(), String> {
	let mut out = std::io::stdout().lock();
	for line in std::io::stdin().lock().lines() {
		let line = line.map_err(|error| error.to_string())?;
		let said = answer(&line).unwrap_or_else(|error| json!({"error": error}));
		writeln!(out, "{said}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
	}
	Ok(())
}
