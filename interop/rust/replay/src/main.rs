//! Reads the emulator's fixtures and vectors with Rust's own code and says where the two differ.
//!
//! `replay PATH…` checks every JSON and SCALE file it knows below each path, one line per file; a difference is one line with
//! file, case and both values. `replay --verify-proofs` reads fuzz cases on standard input and answers one verdict per
//! line. `replay --tries` and `replay --inherent` answer questions of `interop/tries.py` and `interop/inherent.py`.
//! Exit code 0: all equal; 1: a difference; 2: a file that cannot be read or has no known format.

mod chain;
mod fixture;
mod hashing;
mod inherent;
mod json;
mod metadata;
mod oracle;
mod relay;
mod report;
mod signatures;
mod tries;
mod verifier;
mod xcm;

use report::Report;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Checks the cases of one file and reports each.
type Check = fn(&Value, &mut Report) -> Result<(), String>;

/// The checker for a file's content, found by the fields it has. `None` for a format that is not known here.
fn checker(data: &Value) -> Option<(&'static str, Check)> {
	let has = |name: &str| data.get(name).is_some();
	if has("candidate") && has("pre_state") {
		return Some(("fixture", fixture::check));
	}
	if has("relay_state") {
		return Some(("relay state", relay::check));
	}
	if has("messages") && has("publish_instruction") {
		return Some(("xcm", xcm::check));
	}
	if has("hashes") && has("scale") {
		return Some(("hashing and scale", hashing::check));
	}
	if has("seals") && has("signatures") {
		return Some(("seals and signatures", signatures::check));
	}
	if has("publishers") {
		return Some(("publishers", tries::check_publishers));
	}
	let first = data.get("vectors")?.get(0)?;
	let case = |name: &str| first.get(name).is_some();
	if case("root_v0") && case("entries") {
		Some(("roots", tries::check_roots))
	} else if case("batches") {
		Some(("operations", tries::check_operations))
	} else if case("kind") {
		Some(("tampered proofs", tries::check_negative))
	} else if case("relay_top_entries") {
		Some(("pub-sub proofs", tries::check_pubsub))
	} else if case("top_entries") {
		Some(("child tries", tries::check_children))
	} else if case("proof_nodes") && case("entries") {
		Some(("proofs", tries::check_proofs))
	} else {
		None
	}
}

/// All JSON and SCALE files at or below `path`, sorted; schema files are not cases.
fn files(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
	let said = |error: std::io::Error| format!("{}: {error}", path.display());
	if path.is_dir() {
		let mut below: Vec<PathBuf> = std::fs::read_dir(path)
			.map_err(said)?
			.map(|entry| entry.map(|entry| entry.path()))
			.collect::<Result<_, _>>()
			.map_err(said)?;
		below.sort();
		for each in below {
			if each.is_dir() || each.extension().is_some_and(|ending| ending == "json" || ending == "scale") {
				files(&each, found)?;
			}
		}
	} else if path.file_name().is_some_and(|name| name != "schema.json") {
		found.push(path.to_path_buf());
	}
	Ok(())
}

/// Checks one file. `Ok(None)`: its format is not one of ours.
fn check_file(path: &Path) -> Result<Option<Report>, String> {
	let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
	if path.extension().is_some_and(|ending| ending == "scale") {
		let mut report = Report::new(path, "metadata");
		metadata::check(&text, &mut report);
		return Ok(Some(report));
	}
	let data: Value = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
	let Some((kind, check)) = checker(&data) else { return Ok(None) };
	let mut report = Report::new(path, kind);
	check(&data, &mut report).map_err(|error| format!("{}: {error}", path.display()))?;
	Ok(Some(report))
}

fn run(paths: &[String]) -> Result<bool, String> {
	let mut found = Vec::new();
	for path in paths {
		files(Path::new(path), &mut found)?;
	}
	let (mut passed, mut failed, mut unknown) = (0, 0, Vec::new());
	for path in &found {
		match check_file(path)? {
			None => unknown.push(path),
			Some(report) => {
				report.print();
				passed += report.passed;
				failed += report.failed();
			},
		}
	}
	for path in &unknown {
		println!("{}: no format that this program knows", path.display());
	}
	println!("{passed} passed, {failed} failed");
	if passed + failed == 0 {
		return Err("nothing to check".into());
	}
	Ok(failed == 0)
}

fn main() {
	let arguments: Vec<String> = std::env::args().skip(1).collect();
	let result = match arguments.first().map(String::as_str) {
		None => Err("usage: replay PATH… | replay --verify-proofs | replay --tries | replay --inherent".into()),
		Some("--verify-proofs") => verifier::serve().map(|()| true),
		Some("--tries") => oracle::serve().map(|()| true),
		Some("--inherent") => inherent::serve().map(|()| true),
		Some(_) => run(&arguments),
	};
	match result {
		Ok(equal) => std::process::exit(i32::from(!equal)),
		Err(error) => {
			eprintln!("replay: {error}");
			std::process::exit(2);
		},
	}
}
