//! XCM v5: messages that the published crate knows, and `Publish` as the one instruction added to it.

use crate::json::{bytes, field, list, number, text};
use crate::report::Report;
use crate::tries::PublishedEntry;
use codec::{Decode, DecodeAll, Encode, Error, Input, Output};
use serde_json::Value;
use staging_xcm::v5::{Instruction, Location};
use staging_xcm::{VersionedLocation, VersionedXcm};

/// The index of `Publish` among the instructions of v5, the first that the published crate leaves free.
const PUBLISH: u8 = 52;

/// An instruction of v5, `Publish` included.
#[derive(Debug, PartialEq)]
pub enum Item {
	Known(Box<Instruction<()>>),
	Publish { key: [u8; 32], value: Vec<u8>, ttl: u32 },
}

impl Encode for Item {
	fn encode_to<T: Output + ?Sized>(&self, out: &mut T) {
		match self {
			Self::Known(instruction) => instruction.encode_to(out),
			Self::Publish { key, value, ttl } => (PUBLISH, key, value, ttl).encode_to(out),
		}
	}
}

impl Decode for Item {
	fn decode<I: Input>(input: &mut I) -> Result<Self, Error> {
		let index = input.read_byte()?;
		if index == PUBLISH {
			let (key, value, ttl) = Decode::decode(input)?;
			return Ok(Self::Publish { key, value, ttl });
		}
		let mut whole = First { first: Some(index), rest: input };
		Ok(Self::Known(Box::new(Instruction::decode(&mut whole)?)))
	}
}

/// An input with one byte put back.
struct First<'a, I: Input> {
	first: Option<u8>,
	rest: &'a mut I,
}

impl<I: Input> Input for First<'_, I> {
	fn remaining_len(&mut self) -> Result<Option<usize>, Error> {
		let more = usize::from(self.first.is_some());
		Ok(self.rest.remaining_len()?.map(|length| length + more))
	}

	fn read(&mut self, into: &mut [u8]) -> Result<(), Error> {
		match (self.first.take(), into) {
			(first, []) => {
				self.first = first;
				Ok(())
			},
			(Some(byte), [head, tail @ ..]) => {
				*head = byte;
				self.rest.read(tail)
			},
			(None, all) => self.rest.read(all),
		}
	}
}

/// A versioned message as the relay chain takes it from a parachain: version byte 5, then the instructions.
pub fn decode_message(raw: &[u8]) -> Result<Vec<Item>, String> {
	match raw.split_first() {
		Some((5, rest)) => Vec::<Item>::decode_all(&mut &rest[..]).map_err(|error| error.to_string()),
		Some((version, _)) => Err(format!("XCM version {version}")),
		None => Err("no bytes".into()),
	}
}

/// Decodes a message and encodes it again; says whether the bytes are the same.
pub fn check_message(name: &str, raw: &[u8], report: &mut Report) {
	match decode_message(raw) {
		Err(error) => report.failure(name, "message", &error),
		Ok(items) => report.bytes(name, "message", &(5u8, items).encode(), raw),
	}
}

/// Messages, locations, `Publish` and published entries.
pub fn check(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "messages")?.iter().chain(list(data, "random_messages")?) {
		let (name, raw) = (text(case, "name")?, bytes(case, "encoded")?);
		match VersionedXcm::<()>::decode_all(&mut &raw[..]) {
			Err(error) => report.failure(name, "VersionedXcm", &error.to_string()),
			Ok(message) => report.bytes(name, "VersionedXcm", &message.encode(), &raw),
		}
		check_message(name, &raw, report);
		report.bytes(name, "blake2_256", &sp_crypto_hashing::blake2_256(&raw), &bytes(case, "blake2_256")?);
	}
	for case in list(data, "locations")? {
		let name = text(case, "name")?;
		let (versioned, plain) = (bytes(case, "versioned")?, bytes(case, "plain")?);
		match (VersionedLocation::decode_all(&mut &versioned[..]), Location::decode_all(&mut &plain[..])) {
			(Ok(one), Ok(other)) => {
				report.bytes(name, "versioned", &one.encode(), &versioned);
				report.bytes(name, "plain", &other.encode(), &plain);
				report.equal(name, "location", Location::try_from(one), Ok(other));
			},
			(one, other) => report.failure(name, "location", &format!("{one:?} {other:?}")),
		}
	}
	let publish = field(data, "publish_instruction")?;
	report.equal("publish", "index", number(publish, "index")?, u64::from(PUBLISH));
	for (at, case) in list(publish, "cases")?.iter().enumerate() {
		let mut items = Vec::new();
		for item in list(case, "items")? {
			let key = <[u8; 32]>::try_from(bytes(item, "key")?).map_err(|_| "key: a key has 32 bytes")?;
			let ttl = u32::try_from(number(item, "ttl")?).map_err(|_| "ttl: more than u32")?;
			items.push(Item::Publish { key, value: bytes(item, "value")?, ttl });
		}
		let name = format!("publish case {at}");
		let raw = bytes(case, "encoded")?;
		report.equal(&name, "decoded", decode_message(&raw), Ok(items.iter().map(copy).collect()));
		report.bytes(&name, "encoded", &(5u8, items).encode(), &raw);
	}
	for (at, case) in list(data, "published_entries")?.iter().enumerate() {
		let narrow = |field: &str| u32::try_from(number(case, field)?).map_err(|_| format!("{field}: more than u32"));
		let entry =
			PublishedEntry { value: bytes(case, "value")?, ttl: narrow("ttl")?, when_inserted: narrow("when_inserted")? };
		report.bytes(&format!("published entry {at}"), "encoded", &entry.encode(), &bytes(case, "encoded")?);
	}
	Ok(())
}

fn copy(item: &Item) -> Item {
	match item {
		Item::Known(instruction) => Item::Known(instruction.clone()),
		Item::Publish { key, value, ttl } => Item::Publish { key: *key, value: value.clone(), ttl: *ttl },
	}
}
