//! The trie layouts and the types that every checker uses.

use sp_core::{Blake2Hasher, H256};
use sp_runtime::{generic, traits::BlakeTwo256};
use sp_trie::{LayoutV0, LayoutV1, Recorder, StorageProof, TrieConfiguration, TrieDBBuilder, TrieDBMutBuilder, TrieHash, TrieMut};
use sp_trie::{MemoryDB, Trie};

/// The header of the relay chain and of every parachain.
pub type Header = generic::Header<u32, BlakeTwo256>;

/// Entries of a trie.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The prefix of a child trie's root in the top trie.
pub const CHILD_PREFIX: &[u8] = b":child_storage:default:";

/// What a reader gets for one key.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Read {
	Value(Vec<u8>),
	Absent,
	Error,
}

/// A state version, which chooses the trie layout.
#[derive(Clone, Copy)]
pub enum Version {
	V0,
	V1,
}

impl Version {
	pub fn of(number: u64) -> Result<Self, String> {
		match number {
			0 => Ok(Self::V0),
			1 => Ok(Self::V1),
			other => Err(format!("state version {other} is not known")),
		}
	}

	/// The root of all entries, computed in one go.
	pub fn root(self, entries: &[(Vec<u8>, Vec<u8>)]) -> H256 {
		let entries = entries.iter().map(|(key, value)| (key, value));
		match self {
			Self::V0 => LayoutV0::<Blake2Hasher>::trie_root(entries),
			Self::V1 => LayoutV1::<Blake2Hasher>::trie_root(entries),
		}
	}

	/// What reading each key from a proof gives. The reader is sp-trie's own: extra nodes do not disturb it.
	pub fn read(self, root: H256, nodes: &[Vec<u8>], keys: &[Vec<u8>]) -> Vec<Read> {
		let db = StorageProof::new(nodes.iter().cloned()).into_memory_db::<Blake2Hasher>();
		keys.iter().map(|key| self.read_one(&db, root, key)).collect()
	}

	/// What reading one key from a database of nodes gives.
	pub fn read_one(self, db: &MemoryDB<Blake2Hasher>, root: H256, key: &[u8]) -> Read {
		match self {
			Self::V0 => read_in::<LayoutV0<Blake2Hasher>>(db, root, key),
			Self::V1 => read_in::<LayoutV1<Blake2Hasher>>(db, root, key),
		}
	}

	/// Whether the node of `root` is in the proof.
	pub fn has_root(nodes: &[Vec<u8>], root: H256) -> bool {
		nodes.iter().any(|node| H256(sp_crypto_hashing::blake2_256(node)) == root)
	}

	/// Writes entries into a new database below `prefix_free` keys and returns the root.
	pub fn write(self, db: &mut MemoryDB<Blake2Hasher>, entries: &[(Vec<u8>, Vec<u8>)]) -> H256 {
		match self {
			Self::V0 => write_in::<LayoutV0<Blake2Hasher>>(db, entries),
			Self::V1 => write_in::<LayoutV1<Blake2Hasher>>(db, entries),
		}
	}

	/// Applies changes (`None` removes) to the trie below `root` and returns the new root.
	pub fn change(self, db: &mut MemoryDB<Blake2Hasher>, root: H256, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<H256, String> {
		match self {
			Self::V0 => change_in::<LayoutV0<Blake2Hasher>>(db, root, changes),
			Self::V1 => change_in::<LayoutV1<Blake2Hasher>>(db, root, changes),
		}
	}

	/// The nodes that reading `keys` below `root` touches.
	pub fn record(self, db: &MemoryDB<Blake2Hasher>, root: H256, keys: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
		match self {
			Self::V0 => record_in::<LayoutV0<Blake2Hasher>>(db, root, keys),
			Self::V1 => record_in::<LayoutV1<Blake2Hasher>>(db, root, keys),
		}
	}

	/// The compact form of a proof in which a node is repeated at each place that refers to it, as polkadot-sdk wrote it
	/// before it left out nodes that it had written already.
	pub fn compact(self, nodes: &[Vec<u8>], root: H256) -> Result<Vec<Vec<u8>>, String> {
		let db = StorageProof::new(nodes.iter().cloned()).into_memory_db::<Blake2Hasher>();
		match self {
			Self::V0 => compact_in::<LayoutV0<Blake2Hasher>>(&db, root),
			Self::V1 => compact_in::<LayoutV1<Blake2Hasher>>(&db, root),
		}
	}

	/// The compact form of a proof as sp-trie writes it today: a node that is shared is written once.
	pub fn compact_once(self, nodes: &[Vec<u8>], root: H256) -> Result<Vec<Vec<u8>>, String> {
		let db = StorageProof::new(nodes.iter().cloned()).into_memory_db::<Blake2Hasher>();
		let done = match self {
			Self::V0 => sp_trie::encode_compact::<LayoutV0<Blake2Hasher>, _>(&db, &root).map_err(|error| format!("{error:?}")),
			Self::V1 => sp_trie::encode_compact::<LayoutV1<Blake2Hasher>, _>(&db, &root).map_err(|error| format!("{error:?}")),
		};
		Ok(done?.iter_compact_encoded_nodes().map(<[u8]>::to_vec).collect())
	}

	/// The nodes of a compact proof and the root it leads to; an error in sp-trie's words.
	pub fn expand(self, compact: &[Vec<u8>], root: H256) -> Result<MemoryDB<Blake2Hasher>, String> {
		let mut db = MemoryDB::<Blake2Hasher>::new(&[0]);
		let items = compact.iter().map(Vec::as_slice);
		let found = match self {
			Self::V0 => sp_trie::decode_compact::<LayoutV0<Blake2Hasher>, _, _>(&mut db, items, &root),
			Self::V1 => sp_trie::decode_compact::<LayoutV1<Blake2Hasher>, _, _>(&mut db, items, &root),
		};
		match found {
			Err(error) => Err(format!("{error:?}")),
			Ok(_) => Ok(db),
		}
	}
}

fn read_in<L>(db: &MemoryDB<Blake2Hasher>, root: H256, key: &[u8]) -> Read
where
	L: TrieConfiguration<Hash = Blake2Hasher>,
{
	let trie = TrieDBBuilder::<L>::new(db, &root).build();
	match trie.get(key) {
		Ok(Some(value)) => Read::Value(value),
		Ok(None) => Read::Absent,
		Err(_) => Read::Error,
	}
}

fn compact_in<L: TrieConfiguration<Hash = Blake2Hasher>>(db: &MemoryDB<Blake2Hasher>, root: H256) -> Result<Vec<Vec<u8>>, String> {
	trie_db::encode_compact::<L>(&TrieDBBuilder::<L>::new(db, &root).build()).map_err(|error| format!("{error:?}"))
}

fn write_in<L: TrieConfiguration<Hash = Blake2Hasher>>(db: &mut MemoryDB<Blake2Hasher>, entries: &[(Vec<u8>, Vec<u8>)]) -> H256 {
	let mut root = TrieHash::<L>::default();
	{
		let mut trie = TrieDBMutBuilder::<L>::new(db, &mut root).build();
		for (key, value) in entries {
			trie.insert(key, value).expect("a database in memory takes every entry");
		}
	}
	root
}

fn change_in<L: TrieConfiguration<Hash = Blake2Hasher>>(
	db: &mut MemoryDB<Blake2Hasher>,
	mut root: H256,
	changes: &[(Vec<u8>, Option<Vec<u8>>)],
) -> Result<H256, String> {
	{
		let mut trie = TrieDBMutBuilder::<L>::from_existing(db, &mut root).build();
		for (key, value) in changes {
			let done = match value {
				Some(value) => trie.insert(key, value),
				None => trie.remove(key),
			};
			done.map_err(|error| format!("{error:?}"))?;
		}
	}
	Ok(root)
}

fn record_in<L: TrieConfiguration<Hash = Blake2Hasher>>(db: &MemoryDB<Blake2Hasher>, root: H256, keys: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
	let mut recorder = Recorder::<L>::new();
	{
		let trie = TrieDBBuilder::<L>::new(db, &root).with_recorder(&mut recorder).build();
		for key in keys {
			trie.get(key).map_err(|error| format!("{error:?}"))?;
		}
	}
	let mut nodes: Vec<Vec<u8>> = recorder.drain().into_iter().map(|record| record.data).collect();
	nodes.sort();
	nodes.dedup();
	Ok(nodes)
}
