//! Runtime metadata: decoded by the crate that every Rust client uses, and encoded again.

use crate::report::Report;
use codec::{DecodeAll, Encode};
use frame_metadata::{RuntimeMetadata, RuntimeMetadataPrefixed};
use std::collections::BTreeSet;

/// Decodes metadata of any version that the crate knows; V14 to V16 are also checked for types that are not there.
pub fn check(raw: &[u8], report: &mut Report) {
	let metadata = match RuntimeMetadataPrefixed::decode_all(&mut &raw[..]) {
		Ok(metadata) => metadata,
		Err(error) => return report.failure("metadata", "decoding", &error.to_string()),
	};
	report.bytes("metadata", "encoded again", &metadata.encode(), raw);
	let registry = match &metadata.1 {
		RuntimeMetadata::V14(metadata) => &metadata.types,
		RuntimeMetadata::V15(metadata) => &metadata.types,
		RuntimeMetadata::V16(metadata) => &metadata.types,
		other => return report.failure("metadata", "version", &format!("{}, this program reads 14 to 16", other.version())),
	};
	let known: BTreeSet<u32> = registry.types.iter().map(|each| each.id).collect();
	report.equal("metadata", "ids of types", known.len(), registry.types.len());
	let text = serde_json::to_value(registry).unwrap_or_default();
	let mut missing = BTreeSet::new();
	collect(&text, &known, &mut missing);
	report.equal("metadata", "types that are referred to and not there", missing, BTreeSet::new());
}

/// The ids below every field named `type` that are not known.
fn collect(data: &serde_json::Value, known: &BTreeSet<u32>, missing: &mut BTreeSet<u64>) {
	match data {
		serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, known, missing)),
		serde_json::Value::Object(fields) => {
			for (name, value) in fields {
				match value.as_u64() {
					Some(id) if name == "type" && !u32::try_from(id).is_ok_and(|id| known.contains(&id)) => {
						missing.insert(id);
					},
					_ => collect(value, known, missing),
				}
			}
		},
		_ => {},
	}
}
