//! Seals of headers, signatures of messages, and signed extrinsics, in the schemes that Substrate chains use.

use crate::chain::Header;
use crate::fixture::{aura_slot, Context};
use crate::hashing::{item_prefix, twox_64_concat};
use crate::json::{bytes, bytes_list, field, list, text};
use crate::report::Report;
use codec::{Compact, Decode, DecodeAll, Encode};
use serde_json::Value;
use sp_core::{ed25519, sr25519, crypto::AccountId32, Pair};
use sp_crypto_hashing::blake2_256;
use sp_runtime::{generic::Era, traits::Verify, DigestItem, MultiAddress, MultiSignature};

const AURA: [u8; 4] = *b"aura";

/// Signed, format version 4.
const SIGNED: u8 = 0x84;

const TRANSACTION_VERSION: u32 = 1;

/// The longest payload that is signed as it is.
const MAX_PLAIN_PAYLOAD: usize = 256;

/// Vectors of seals and signatures.
pub fn check(data: &Value, report: &mut Report) -> Result<(), String> {
	for case in list(data, "seals")? {
		let (name, scheme) = (text(case, "name")?, text(case, "scheme")?);
		let raw = bytes(case, "header")?;
		let header = Header::decode_all(&mut &raw[..]).map_err(|error| format!("{name}: header: {error}"))?;
		report.bytes(name, "header encoded again", &header.encode(), &raw);
		let found = sealed(scheme, &header, &bytes_list(case, "authorities")?)?;
		report.equal(name, &format!("{scheme} seal holds"), found, truth(case)?);
	}
	for case in list(data, "signatures")? {
		let (name, scheme) = (text(case, "name")?, text(case, "scheme")?);
		let account = <[u8; 32]>::try_from(bytes(case, "account")?).map_err(|_| format!("{name}: account: not 32 bytes"))?;
		let found = held(scheme, &bytes(case, "signature")?, &bytes(case, "message")?, account)?;
		report.equal(name, &format!("{scheme} signature holds"), found, truth(case)?);
	}
	Ok(())
}

fn truth(case: &Value) -> Result<bool, String> {
	field(case, "holds")?.as_bool().ok_or_else(|| "holds: neither true nor false".to_owned())
}

/// Whether the last digest item is the signature of the author whose turn the slot is, over the header without it.
fn sealed(scheme: &str, header: &Header, authorities: &[Vec<u8>]) -> Result<bool, String> {
	let Some(DigestItem::Seal(AURA, signature)) = header.digest.logs.last() else { return Ok(false) };
	let (Some(slot), false) = (aura_slot(header), authorities.is_empty()) else { return Ok(false) };
	let turn = usize::try_from(slot % authorities.len() as u64).map_err(|error| error.to_string())?;
	let key = <[u8; 32]>::try_from(authorities[turn].as_slice()).map_err(|_| "an authority is not 32 bytes")?;
	let Ok(signature) = <[u8; 64]>::try_from(signature.as_slice()) else { return Ok(false) };
	let mut unsealed = header.clone();
	unsealed.digest.logs.pop();
	let hash = unsealed.hash();
	match scheme {
		"Ed25519" => Ok(ed25519::Pair::verify(&ed25519::Signature::from_raw(signature), hash, &ed25519::Public::from_raw(key))),
		"Sr25519" => Ok(sr25519::Pair::verify(&sr25519::Signature::from_raw(signature), hash, &sr25519::Public::from_raw(key))),
		other => Err(format!("a seal of scheme {other} is not known")),
	}
}

/// Whether `signature` is the account's over `message`; false for bytes that are no signature.
fn held(scheme: &str, signature: &[u8], message: &[u8], account: [u8; 32]) -> Result<bool, String> {
	let tag: u8 = match scheme {
		"Ed25519" => 0,
		"Sr25519" => 1,
		"Ecdsa" => 2,
		other => return Err(format!("signatures of scheme {other} are not known")),
	};
	let raw = [&[tag], signature].concat();
	let Ok(signature) = MultiSignature::decode_all(&mut &raw[..]) else { return Ok(false) };
	Ok(signature.verify(message, &AccountId32::from(account)))
}

/// What stands before the call of a signed extrinsic, after its version.
#[derive(Decode, Encode)]
struct Signed {
	address: MultiAddress<AccountId32, ()>,
	signature: MultiSignature,
	era: Era,
	nonce: Compact<u32>,
	tip: Compact<u128>,
	mode: u8,
}

/// The scheme of an extrinsic's signature, and whether the account that it names made it for this chain's next block.
///
/// Fails for bytes that are no signed extrinsic with an account id.
pub fn signed(extrinsic: &[u8], context: &Context) -> Result<(&'static str, bool), String> {
	let mut rest = match extrinsic.split_first() {
		Some((&SIGNED, rest)) => rest,
		_ => return Err("not a signed extrinsic of version 4".into()),
	};
	let head = Signed::decode(&mut rest).map_err(|error| error.to_string())?;
	let MultiAddress::Id(account) = head.address else { return Err("the signer is no account id".into()) };
	let extra = (head.era, head.nonce, head.tip, head.mode).encode();
	let number = context.parent.number + 1;
	let birth = u32::try_from(head.era.birth(number.into())).map_err(|error| error.to_string())?;
	let implicit = (context.spec_version()?, TRANSACTION_VERSION, block_hash(context, 0)?, block_hash(context, birth)?, 0_u8).encode();
	let mut payload = [rest, &extra, &implicit].concat();
	if payload.len() > MAX_PLAIN_PAYLOAD {
		payload = blake2_256(&payload).to_vec();
	}
	let scheme = match &head.signature {
		MultiSignature::Ed25519(_) => "Ed25519",
		MultiSignature::Sr25519(_) => "Sr25519",
		MultiSignature::Ecdsa(_) => "Ecdsa",
		MultiSignature::Eth(_) => return Err("signatures of Ethereum accounts are not part of these chains".into()),
	};
	Ok((scheme, head.signature.verify(&payload[..], &account)))
}

/// The hash of an earlier block, as the state or the parent header says.
fn block_hash(context: &Context, number: u32) -> Result<[u8; 32], String> {
	if number == context.parent.number {
		return Ok(context.parent.hash().0);
	}
	let key = [item_prefix("System", "BlockHash"), twox_64_concat(&number.encode())].concat();
	let raw = context.state.get(&key).ok_or_else(|| format!("pre_state: no hash of block {number}"))?;
	<[u8; 32]>::try_from(raw.as_slice()).map_err(|_| format!("pre_state: the hash of block {number} is not 32 bytes"))
}
