//! Fixtures: one judged parachain block per file, read with Rust's own codecs, tries and signatures.

use crate::chain::{Header, Read, Version, CHILD_PREFIX};
use crate::hashing::item_prefix;
use crate::json::{bytes, entries, field, list, number};
use crate::report::Report;
use crate::signatures::signed;
use crate::tries::PublishedEntry;
use codec::{Decode, DecodeAll, Encode};
use serde_json::Value;
use sp_core::{ed25519, Pair, H256};
use sp_crypto_hashing::blake2_256;
use sp_core::Blake2Hasher;
use sp_runtime::DigestItem;
use sp_trie::{LayoutV0, MemoryDB, StorageProof, TrieConfiguration};
use std::collections::{BTreeMap, BTreeSet};

const AURA: [u8; 4] = *b"aura";

/// `ParachainSystem::set_validation_data`, as an extrinsic without signature in format version 5.
const CALL: [u8; 3] = [5, 1, 0];

/// `InboundMessagesData`: the first messages in full, the others hashed, horizontal ones with their sender before them.
#[derive(Encode, Decode, Debug, PartialEq)]
pub struct Messages {
	pub downward: Vec<(u32, Vec<u8>)>,
	pub hashed_downward: Vec<(u32, H256)>,
	pub horizontal: Vec<(u32, u32, Vec<u8>)>,
	pub hashed_horizontal: Vec<(u32, u32, H256)>,
}

/// The arguments of `set_validation_data`: `BasicParachainInherentData`, its fields in order, and `InboundMessagesData`.
#[derive(Encode, Decode, Debug, PartialEq)]
pub struct Inherent {
	pub parent_head: Vec<u8>,
	pub relay_parent_number: u32,
	pub relay_parent_storage_root: H256,
	pub max_pov_size: u32,
	pub proof: Vec<Vec<u8>>,
	pub relay_parent_descendants: Vec<Header>,
	pub collator_peer_id: Option<Vec<u8>>,
	pub messages: Messages,
}

/// A sealed header and its body.
#[derive(Encode, Decode, Debug)]
pub struct Block {
	pub header: Header,
	pub extrinsics: Vec<Vec<u8>>,
}

/// A decoded candidate: the block, and the inherent that its first extrinsic carries.
pub struct Candidate {
	pub block: Block,
	pub inherent: Inherent,
}

/// The Aura slot that a header claims.
pub fn aura_slot(header: &Header) -> Option<u64> {
	header.digest.logs.iter().find_map(|item| match item {
		DigestItem::PreRuntime(AURA, raw) => u64::decode_all(&mut &raw[..]).ok(),
		_ => None,
	})
}

impl Candidate {
	/// Decodes all of `raw`.
	pub fn decode(raw: &[u8]) -> Result<Self, String> {
		let block = Block::decode_all(&mut &raw[..]).map_err(|error| format!("candidate: {error}"))?;
		let extrinsic = block.extrinsics.first().ok_or("candidate: no extrinsics")?;
		let call = extrinsic.strip_prefix(&CALL).ok_or("candidate: the first extrinsic is not a bare set_validation_data")?;
		let inherent = Inherent::decode_all(&mut &call[..]).map_err(|error| format!("candidate: inherent: {error}"))?;
		Ok(Self { block, inherent })
	}

	/// The Aura slot that the header claims.
	pub fn slot(&self) -> Option<u64> {
		aura_slot(&self.block.header)
	}

	/// The extrinsics after the inherent: those that accounts signed.
	pub fn signed(&self) -> &[Vec<u8>] {
		&self.block.extrinsics[1..]
	}

	/// Root of the ordered trie (layout V0) of the body.
	pub fn extrinsics_root(&self) -> H256 {
		let raw: Vec<Vec<u8>> = self.block.extrinsics.iter().map(Encode::encode).collect();
		LayoutV0::<Blake2Hasher>::ordered_trie_root(raw)
	}
}

/// What the file says around the candidate.
pub struct Context {
	pub parent: Header,
	pub state: BTreeMap<Vec<u8>, Vec<u8>>,
	pub relay_root: Option<H256>,
	pub slot_now: u64,
}

impl Context {
	/// Reads `parent_header`, `pre_state` and `relay`.
	pub fn read(data: &Value) -> Result<Self, String> {
		let parent = Header::decode_all(&mut &bytes(data, "parent_header")?[..]).map_err(|error| format!("parent_header: {error}"))?;
		let relay = field(data, "relay")?;
		let relay_root = match field(relay, "storage_root")? {
			Value::Null => None,
			_ => Some(crate::tries::hash(relay, "storage_root")?),
		};
		let state = entries(data, "pre_state")?.into_iter().collect();
		Ok(Self { parent, state, relay_root, slot_now: number(relay, "slot_now")? })
	}

	/// The collators in the order of their turns.
	pub fn authorities(&self) -> Result<Vec<ed25519::Public>, String> {
		let raw = self.state.get(&item_prefix("Aura", "Authorities")).ok_or("pre_state: no Aura::Authorities")?;
		let keys = Vec::<[u8; 32]>::decode_all(&mut &raw[..]).map_err(|error| format!("Aura::Authorities: {error}"))?;
		Ok(keys.into_iter().map(ed25519::Public::from_raw).collect())
	}

	/// The runtime's version, which follows the parachain's id in `:code`.
	pub fn spec_version(&self) -> Result<u32, String> {
		let raw = self.state.get(&b":code"[..]).ok_or("pre_state: no :code")?;
		let (_, version) = <(u32, u32)>::decode(&mut &raw[..]).map_err(|error| format!(":code: {error}"))?;
		Ok(version)
	}
}

/// Offences that need neither the walk nor execution. The walk's (`OmittedBelowBudget`, `UnusedNodes`), the messages'
/// and the post-state's are not judged here.
pub const JUDGED: [&str; 6] = ["BadSeal", "BadParent", "DuplicateNode", "UnsortedProof", "RootMismatch", "RelayParentDecreased"];

/// The offences among `JUDGED` that a candidate commits.
pub fn offences(candidate: &Candidate, context: &Context) -> Result<BTreeSet<&'static str>, String> {
	let mut found = BTreeSet::new();
	let header = &candidate.block.header;
	if !sealed(candidate, context)? {
		found.insert("BadSeal");
	}
	let follows = header.parent_hash == context.parent.hash() && context.parent.number.checked_add(1) == Some(header.number);
	if !follows {
		found.insert("BadParent");
	}
	let last = context.state.get(&item_prefix("Subscriber", "LastRelayParent")).map(|raw| u32::decode_all(&mut &raw[..]));
	if let Some(last) = last {
		let last = last.map_err(|error| format!("Subscriber::LastRelayParent: {error}"))?;
		if candidate.inherent.relay_parent_number < last {
			found.insert("RelayParentDecreased");
		}
	}
	let proof = &candidate.inherent.proof;
	if proof.iter().collect::<BTreeSet<_>>().len() != proof.len() {
		found.insert("DuplicateNode");
	}
	if proof.windows(2).any(|pair| pair[1] < pair[0]) {
		found.insert("UnsortedProof");
	}
	let claimed = candidate.inherent.relay_parent_storage_root;
	if context.relay_root != Some(claimed) || !Version::has_root(proof, claimed) {
		found.insert("RootMismatch");
	}
	Ok(found)
}

/// Whether the seal is the signature of the collator whose turn the slot is, over the header without the seal, and the
/// header commits to the body. Exactly one pre-runtime digest and the seal at the end make up the digest, apart from items
/// that say that the block applied new code.
fn sealed(candidate: &Candidate, context: &Context) -> Result<bool, String> {
	let header = &candidate.block.header;
	let logs = &header.digest.logs;
	let others: Vec<&DigestItem> = logs.iter().filter(|item| **item != DigestItem::RuntimeEnvironmentUpdated).collect();
	let [DigestItem::PreRuntime(AURA, _), DigestItem::Seal(AURA, signature)] = others.as_slice() else {
		return Ok(false);
	};
	if !matches!(logs.last(), Some(DigestItem::Seal(..))) {
		return Ok(false);
	}
	let Ok(signature) = <[u8; 64]>::try_from(signature.as_slice()) else { return Ok(false) };
	let Some(slot) = candidate.slot() else { return Ok(false) };
	let parent_slot = aura_slot(&context.parent);
	let authorities = context.authorities()?;
	if authorities.is_empty() || slot > context.slot_now || parent_slot.is_some_and(|parent| slot <= parent) {
		return Ok(false);
	}
	let mut unsealed = header.clone();
	unsealed.digest.logs.pop();
	let turn = usize::try_from(slot % authorities.len() as u64).map_err(|error| error.to_string())?;
	let signature = ed25519::Signature::from_raw(signature);
	Ok(ed25519::Pair::verify(&signature, unsealed.hash(), &authorities[turn]) && header.extrinsics_root == candidate.extrinsics_root())
}

/// Checks one fixture.
pub fn check(data: &Value, report: &mut Report) -> Result<(), String> {
	let name = crate::json::text(data, "name")?;
	report.equal(name, "version", number(data, "version")?, 1);
	let context = Context::read(data)?;
	let all: Vec<(Vec<u8>, Vec<u8>)> = entries(data, "pre_state")?;
	report.equal(name, "pre-state root", Version::V1.root(&all), context.parent.state_root);
	let raw = bytes(data, "candidate")?;
	let candidate = Candidate::decode(&raw)?;
	report.bytes(name, "candidate encoded again", &candidate.block.encode(), &raw);
	let again = [&CALL[..], &candidate.inherent.encode()].concat();
	report.bytes(name, "inherent encoded again", &again, &candidate.block.extrinsics[0]);
	claims(name, data, &candidate, report)?;
	let expected = field(data, "expected")?;
	let said: BTreeSet<&str> = list(expected, "evidence")?
		.iter()
		.filter_map(|offence| JUDGED.into_iter().find(|name| offence["verdict"] == *name))
		.collect();
	report.equal(name, "offences that need no walk", offences(&candidate, &context)?, said);
	let post = crate::tries::hash(expected, "post_state_root")?;
	if expected["verdict"].is_null() {
		report.equal(name, "post-state root", candidate.block.header.state_root, post);
		for (at, extrinsic) in candidate.signed().iter().enumerate() {
			let case = format!("{name}: extrinsic {}", at + 1);
			match signed(extrinsic, &context) {
				Ok((scheme, holds)) => report.equal(&case, &format!("{scheme} signature holds"), holds, true),
				Err(error) => report.failure(&case, "signature", &error),
			}
		}
		deliveries(name, expected, &candidate, &context, report)?;
	} else {
		report.equal(name, "post-state root", context.parent.state_root, post);
	}
	Ok(())
}

fn claims(name: &str, data: &Value, candidate: &Candidate, report: &mut Report) -> Result<(), String> {
	let claims = field(data, "claims")?;
	let (header, inherent) = (&candidate.block.header, &candidate.inherent);
	report.equal(name, "parent_hash", header.parent_hash, crate::tries::hash(claims, "parent_hash")?);
	report.equal(name, "number", u64::from(header.number), number(claims, "number")?);
	report.equal(name, "slot", candidate.slot(), field(claims, "slot")?.as_u64());
	report.equal(name, "relay_parent_number", u64::from(inherent.relay_parent_number), number(claims, "relay_parent_number")?);
	let root = crate::tries::hash(claims, "relay_parent_storage_root")?;
	report.equal(name, "relay_parent_storage_root", inherent.relay_parent_storage_root, root);
	report.equal(name, "messages_used", inherent.messages.encoded_size() as u64, number(claims, "messages_used")?);
	report.equal(name, "post_state_root", header.state_root, crate::tries::hash(claims, "post_state_root")?);
	report.equal(name, "proof", inherent.proof.clone(), crate::json::bytes_list(claims, "proof")?);
	Ok(())
}

/// Every delivered entry, and every removal, must be what the proof says; nodes that the chain has cached count, too.
fn deliveries(name: &str, expected: &Value, candidate: &Candidate, context: &Context, report: &mut Report) -> Result<(), String> {
	let cached = item_prefix("Subscriber", "CachedTrieNodes");
	let mut nodes = candidate.inherent.proof.clone();
	nodes.extend(context.state.iter().filter(|(key, _)| key.starts_with(&cached)).map(|(_, node)| node.clone()));
	let db = StorageProof::new(nodes).into_memory_db::<Blake2Hasher>();
	let root = candidate.inherent.relay_parent_storage_root;
	for delivery in list(expected, "deliveries")? {
		let para = u32::try_from(number(delivery, "publisher")?).map_err(|_| "publisher: more than u32")?;
		let key = bytes(delivery, "key")?;
		let case = format!("{name}: delivery of {para} 0x{}", hex::encode(&key));
		let found = published(&db, root, para, &key);
		match (delivery["kind"].as_str(), found) {
			(Some("updated"), Read::Value(entry)) => {
				report.bytes(&case, "entry_hash", &blake2_256(&entry), &bytes(delivery, "entry_hash")?);
				match PublishedEntry::decode_all(&mut &entry[..]) {
					Err(error) => report.failure(&case, "entry", &error.to_string()),
					Ok(entry) => {
						let state = ttl_state(&entry, candidate.inherent.relay_parent_number).encode();
						report.bytes(&case, "ttl_state", &state, &bytes(delivery, "ttl_state")?);
					},
				}
			},
			(Some("removed"), found) => report.equal(&case, "entry", found, Read::Absent),
			(kind, found) => report.failure(&case, "entry", &format!("{kind:?}, but the proof gives {found:?}")),
		}
	}
	Ok(())
}

fn published(db: &MemoryDB<Blake2Hasher>, root: H256, para: u32, key: &[u8]) -> Read {
	let child = [CHILD_PREFIX, &(*b"pubsub", para).encode()].concat();
	match Version::V1.read_one(db, root, &child) {
		Read::Value(raw) if raw.len() == 32 => Version::V1.read_one(db, H256::from_slice(&raw), key),
		Read::Absent => Read::Absent,
		_ => Read::Error,
	}
}

#[derive(Encode)]
enum TtlState {
	Infinite,
	ValidFor(u32),
	TimedOut,
}

fn ttl_state(entry: &PublishedEntry, now: u32) -> TtlState {
	let expiry = u64::from(entry.when_inserted) + u64::from(entry.ttl);
	match expiry.checked_sub(u64::from(now)) {
		_ if entry.ttl == 0 => TtlState::Infinite,
		None | Some(0) => TtlState::TimedOut,
		Some(left) => TtlState::ValidFor(u32::try_from(left).unwrap_or(u32::MAX)),
	}
}
