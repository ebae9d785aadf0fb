//! Fields of a JSON value by name; every error names the field.

use serde_json::Value;

/// The field `name`.
pub fn field<'a>(data: &'a Value, name: &str) -> Result<&'a Value, String> {
	data.get(name).ok_or_else(|| format!("field `{name}` is missing"))
}

/// The bytes of a hexadecimal text with `0x`.
pub fn raw(data: &Value) -> Result<Vec<u8>, String> {
	let text = data.as_str().ok_or("bytes are a text that starts with 0x")?;
	let digits = text.strip_prefix("0x").ok_or("bytes start with 0x")?;
	hex::decode(digits).map_err(|error| error.to_string())
}

/// The bytes in field `name`.
pub fn bytes(data: &Value, name: &str) -> Result<Vec<u8>, String> {
	raw(field(data, name)?).map_err(|error| format!("{name}: {error}"))
}

/// The text in field `name`.
pub fn text<'a>(data: &'a Value, name: &str) -> Result<&'a str, String> {
	field(data, name)?.as_str().ok_or_else(|| format!("{name}: not a text"))
}

/// The whole number in field `name`.
pub fn number(data: &Value, name: &str) -> Result<u64, String> {
	field(data, name)?.as_u64().ok_or_else(|| format!("{name}: not a whole number"))
}

/// The list in field `name`.
pub fn list<'a>(data: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
	field(data, name)?.as_array().ok_or_else(|| format!("{name}: not a list"))
}

/// The list of byte strings in field `name`.
pub fn bytes_list(data: &Value, name: &str) -> Result<Vec<Vec<u8>>, String> {
	list(data, name)?.iter().map(raw).collect::<Result<_, _>>().map_err(|error| format!("{name}: {error}"))
}

/// The pairs `[key, value]` in field `name`.
pub fn entries(data: &Value, name: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>, String> {
	let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
		Some([key, value]) => Ok((raw(key)?, raw(value)?)),
		_ => Err("an entry is a pair".to_owned()),
	};
	list(data, name)?.iter().map(pair).collect::<Result<_, _>>().map_err(|error| format!("{name}: {error}"))
}
