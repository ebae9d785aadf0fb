//! Vectors of hashes, storage keys and SCALE values.

use crate::json::{bytes, field, list, number, text};
use crate::report::Report;
use codec::{Compact, Decode, DecodeAll, Encode};
use serde_json::Value;
use sp_crypto_hashing::{blake2_128, blake2_256, twox_128, twox_256, twox_64};
use std::collections::{BTreeMap, BTreeSet};

/// `twox_64(data) ++ data`, FRAME's `Twox64Concat`.
pub fn twox_64_concat(data: &[u8]) -> Vec<u8> {
	[&twox_64(data)[..], data].concat()
}

/// `twox_128(pallet) ++ twox_128(item)`: where a storage item begins.
pub fn item_prefix(pallet: &str, item: &str) -> Vec<u8> {
	[twox_128(pallet.as_bytes()), twox_128(item.as_bytes())].concat()
}

/// Hashes, storage keys and SCALE.
pub fn check(data: &Value, report: &mut Report) -> Result<(), String> {
	for (at, case) in list(data, "hashes")?.iter().enumerate() {
		let (name, raw) = (format!("hashes[{at}]"), bytes(case, "data")?);
		for (hasher, found) in [
			("twox64", twox_64(&raw).to_vec()),
			("twox128", twox_128(&raw).to_vec()),
			("twox256", twox_256(&raw).to_vec()),
			("blake2_128", blake2_128(&raw).to_vec()),
			("blake2_256", blake2_256(&raw).to_vec()),
			("twox64_concat", twox_64_concat(&raw)),
			("blake2_128_concat", [&blake2_128(&raw)[..], &raw].concat()),
		] {
			report.bytes(&name, hasher, &found, &bytes(case, hasher)?);
		}
	}
	for case in list(data, "storage_keys")? {
		let (pallet, item) = (text(case, "pallet")?, text(case, "item")?);
		let key = bytes(case, "key")?;
		let found = item_prefix(pallet, item);
		report.bytes(&format!("{pallet}.{item}"), "prefix", &found, &key[..found.len().min(key.len())]);
	}
	for case in list(data, "relay_well_known_keys")? {
		well_known(case, report)?;
	}
	for (at, case) in list(data, "scale")?.iter().enumerate() {
		scale(&format!("scale[{at}]"), case, report)?;
	}
	Ok(())
}

fn well_known(case: &Value, report: &mut Report) -> Result<(), String> {
	let narrow = |name: &str| u32::try_from(number(case, name)?).map_err(|_| format!("{name}: more than u32"));
	let (para, other) = (narrow("para_id")?, narrow("other_para")?);
	let name = format!("well-known keys of {para}");
	let of = |pallet: &str, item: &str, key: Vec<u8>| [item_prefix(pallet, item), twox_64_concat(&key)].concat();
	for (key, found) in [
		("para_head", of("Paras", "Heads", para.encode())),
		("dmq_mqc_head", of("Dmp", "DownwardMessageQueueHeads", para.encode())),
		("hrmp_ingress_channel_index", of("Hrmp", "HrmpIngressChannelsIndex", para.encode())),
		("hrmp_egress_channel_index", of("Hrmp", "HrmpEgressChannelsIndex", para.encode())),
		("hrmp_channel_other_to_para", of("Hrmp", "HrmpChannels", (other, para).encode())),
		("relay_dispatch_queue_remaining_capacity", [&b":relay_dispatch_queue_remaining_capacity"[..], &para.encode()].concat()),
	] {
		report.bytes(&name, key, &found, &bytes(case, key)?);
	}
	Ok(())
}

fn again<T: Decode + Encode>(name: &str, kind: &str, raw: &[u8], report: &mut Report) -> Option<T> {
	match T::decode_all(&mut &raw[..]) {
		Ok(value) => {
			report.bytes(name, kind, &value.encode(), raw);
			Some(value)
		},
		Err(error) => {
			report.failure(name, kind, &error.to_string());
			None
		},
	}
}

fn scale(name: &str, case: &Value, report: &mut Report) -> Result<(), String> {
	let (kind, raw) = (text(case, "type")?, bytes(case, "encoded")?);
	let value = field(case, "value")?;
	let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
	let mut whole = |found: Option<String>| {
		if let Some(found) = found {
			report.equal(name, kind, found, said.clone());
		}
	};
	match kind {
		"Compact<u128>" => whole(Compact::<u128>::decode_all(&mut &raw[..]).ok().map(|value| value.0.to_string())),
		"u8" => whole(u8::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		"u16" => whole(u16::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		"u32" => whole(u32::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		"u64" => whole(u64::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		"u128" => whole(u128::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		"i32" => whole(i32::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		"i64" => whole(i64::decode_all(&mut &raw[..]).ok().map(|value| value.to_string())),
		_ => {},
	}
	match kind {
		"Compact<u128>" => drop(again::<Compact<u128>>(name, kind, &raw, report)),
		"Bytes" => drop(again::<Vec<u8>>(name, kind, &raw, report)),
		"u8" => drop(again::<u8>(name, kind, &raw, report)),
		"u16" => drop(again::<u16>(name, kind, &raw, report)),
		"u32" => drop(again::<u32>(name, kind, &raw, report)),
		"u64" => drop(again::<u64>(name, kind, &raw, report)),
		"u128" => drop(again::<u128>(name, kind, &raw, report)),
		"i32" => drop(again::<i32>(name, kind, &raw, report)),
		"i64" => drop(again::<i64>(name, kind, &raw, report)),
		"bool" => drop(again::<bool>(name, kind, &raw, report)),
		"String" => drop(again::<String>(name, kind, &raw, report)),
		"Option<bool>" => drop(again::<Option<bool>>(name, kind, &raw, report)),
		"Option<Option<bool>>" => drop(again::<Option<Option<bool>>>(name, kind, &raw, report)),
		"Option<u32>" => drop(again::<Option<u32>>(name, kind, &raw, report)),
		"Vec<u32>" => drop(again::<Vec<u32>>(name, kind, &raw, report)),
		"Vec<Bytes>" => drop(again::<Vec<Vec<u8>>>(name, kind, &raw, report)),
		"Result<u32,u8>" => drop(again::<Result<u32, u8>>(name, kind, &raw, report)),
		"(u32,Bytes)" => drop(again::<(u32, Vec<u8>)>(name, kind, &raw, report)),
		"(u32,u32)" => drop(again::<(u32, u32)>(name, kind, &raw, report)),
		"Vec<(u32,[u8;4])>" => drop(again::<Vec<(u32, [u8; 4])>>(name, kind, &raw, report)),
		"BTreeMap<u32,Bytes>" => drop(again::<BTreeMap<u32, Vec<u8>>>(name, kind, &raw, report)),
		"BTreeSet<u32>" => drop(again::<BTreeSet<u32>>(name, kind, &raw, report)),
		"[u8;32]" => drop(again::<[u8; 32]>(name, kind, &raw, report)),
		other => report.failure(name, other, "this program has no Rust type for it"),
	}
	Ok(())
}
