//! `replay --verify-proofs`: a verifier for `pubsub fuzz --verifier`, for the offences that need no walk.
//!
//! One case per line on standard input: a JSON object with `id`, `parent_header`, `pre_state`, `relay` and `candidate`,
//! as in a fixture. One answer per line on standard output: `{"id": …, "judged": [verdicts], "offences": [verdicts]}`.

use crate::fixture::{offences, Candidate, Context, JUDGED};
use crate::json::bytes;
use serde_json::{json, Value};
use std::io::{BufRead, Write};

fn answer(line: &str) -> Result<Value, String> {
	let data: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
	let id = data.get("id").cloned().unwrap_or(Value::Null);
	let candidate = match Candidate::decode(&bytes(&data, "candidate")?) {
		Ok(candidate) => candidate,
		Err(error) => return Ok(json!({"id": id, "undecodable": error})),
	};
	let found = offences(&candidate, &Context::read(&data)?)?;
	Ok(json!({"id": id, "judged": JUDGED, "offences": found}))
}

/// Answers every case until the input ends.
pub fn serve() -> Result<(), String> {
	let mut out = std::io::stdout().lock();
	for line in std::io::stdin().lock().lines() {
		let said = answer(&line.map_err(|error| error.to_string())?)?;
		writeln!(out, "{said}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
	}
	Ok(())
}
