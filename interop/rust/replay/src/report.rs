//! What came of one file: how many cases were equal, and a line for each that was not.

use std::path::{Path, PathBuf};

/// The outcome of one file's cases.
pub struct Report {
	path: PathBuf,
	kind: &'static str,
	/// Comparisons that were equal.
	pub passed: usize,
	differences: Vec<String>,
}

impl Report {
	/// A report without cases.
	pub fn new(path: &Path, kind: &'static str) -> Self {
		Self { path: path.to_path_buf(), kind, passed: 0, differences: Vec::new() }
	}

	/// Compares what Rust found with what the file says; a difference names the case, the thing and both values.
	pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, case: &str, what: &str, found: T, said: T) {
		if found == said {
			self.passed += 1;
		} else {
			let (found, said) = (short(&format!("{found:?}")), short(&format!("{said:?}")));
			self.differences.push(format!("{case}: {what}: Rust finds {found}, the file says {said}"));
		}
	}

	/// As `equal`, for bytes.
	pub fn bytes(&mut self, case: &str, what: &str, found: &[u8], said: &[u8]) {
		self.equal(case, what, hex::encode(found), hex::encode(said));
	}

	/// Notes that Rust could not do what the file asks for.
	pub fn failure(&mut self, case: &str, what: &str, why: &str) {
		self.differences.push(format!("{case}: {what}: {why}"));
	}

	/// How many comparisons differed.
	pub fn failed(&self) -> usize {
		self.differences.len()
	}

	/// Prints the differences, then the line of the file.
	pub fn print(&self) {
		for line in &self.differences {
			println!("{}: {line}", self.path.display());
		}
		println!("{}: {}: {} passed, {} failed", self.path.display(), self.kind, self.passed, self.failed());
	}
}

fn short(text: &str) -> String {
	if text.len() <= 160 {
		return text.to_owned();
	}
	let cut = (0..=150).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
	format!("{}… ({} characters)", &text[..cut], text.len())
}
