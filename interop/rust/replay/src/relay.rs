//! A relay chain's whole state: roots, header, every storage value as a typed struct, events, and the block's body.

use crate::chain::{Entries, Header, Version, CHILD_PREFIX};
use crate::hashing::{item_prefix, twox_64_concat};
use crate::json::{bytes, bytes_list, entries, field, list, number, text};
use crate::report::Report;
use crate::tries::PublishedEntry;
use codec::{Compact, Decode, DecodeAll, Encode};
use serde_json::Value;
use sp_core::{crypto::AccountId32, Blake2Hasher, H256};
use sp_runtime::{Digest, DispatchError};
use sp_trie::{LayoutV0, TrieConfiguration};
use std::collections::BTreeMap;

type Para = u32;
type Key = [u8; 32];

#[derive(Encode, Decode)]
struct Weight {
	ref_time: Compact<u64>,
	proof_size: Compact<u64>,
}

#[derive(Encode, Decode)]
struct AccountData {
	free: u128,
	reserved: u128,
	frozen: u128,
	flags: u128,
}

#[derive(Encode, Decode)]
struct AccountInfo {
	nonce: u32,
	consumers: u32,
	providers: u32,
	sufficients: u32,
	data: AccountData,
}

#[derive(Encode, Decode)]
struct PerDispatchClass {
	normal: Weight,
	operational: Weight,
	mandatory: Weight,
}

#[derive(Encode, Decode)]
enum Phase {
	ApplyExtrinsic(u32),
	Finalization,
	Initialization,
}

#[derive(Encode, Decode)]
struct HoldReason {
	pallet: u8,
	variant: u8,
}

#[derive(Encode, Decode)]
struct AsyncBackingParams {
	max_candidate_depth: u32,
	allowed_ancestry_len: u32,
}

#[derive(Encode, Decode)]
enum ExecutorParam {
	#[codec(index = 1)]
	MaxMemoryPages(u32),
	#[codec(index = 2)]
	StackLogicalMax(u32),
	#[codec(index = 3)]
	StackNativeMax(u32),
	#[codec(index = 4)]
	PrecheckingMaxMemory(u64),
	#[codec(index = 5)]
	PvfPrepTimeout(u8, u64),
	#[codec(index = 6)]
	PvfExecTimeout(u8, u64),
	#[codec(index = 7)]
	WasmExtBulkMemory,
}

#[derive(Encode, Decode)]
struct SchedulerParams {
	group_rotation_frequency: u32,
	paras_availability_period: u32,
	max_validators_per_core: Option<u32>,
	lookahead: u32,
	num_cores: u32,
	max_availability_timeouts: u32,
	on_demand_queue_max_size: u32,
	on_demand_target_queue_utilization: u32,
	on_demand_fee_variability: u32,
	on_demand_base_fee: u128,
	ttl: u32,
}

/// `BitVec<u8, Lsb0>`: a compact number of bits, and the bytes that hold them.
struct Bits {
	length: u32,
	data: Vec<u8>,
}

impl Encode for Bits {
	fn encode(&self) -> Vec<u8> {
		[Compact(self.length).encode(), self.data.clone()].concat()
	}
}

impl Decode for Bits {
	fn decode<I: codec::Input>(input: &mut I) -> Result<Self, codec::Error> {
		let Compact(length) = Compact::<u32>::decode(input)?;
		let mut data = Vec::new();
		for _ in 0..length.div_ceil(8) {
			data.push(input.read_byte()?);
		}
		Ok(Self { length, data })
	}
}

#[derive(Encode, Decode)]
struct HostConfiguration {
	max_code_size: u32,
	max_head_data_size: u32,
	max_upward_queue_count: u32,
	max_upward_queue_size: u32,
	max_upward_message_size: u32,
	max_upward_message_num_per_candidate: u32,
	hrmp_max_message_num_per_candidate: u32,
	validation_upgrade_cooldown: u32,
	validation_upgrade_delay: u32,
	async_backing_params: AsyncBackingParams,
	max_pov_size: u32,
	max_downward_message_size: u32,
	hrmp_max_parachain_outbound_channels: u32,
	hrmp_sender_deposit: u128,
	hrmp_recipient_deposit: u128,
	hrmp_channel_max_capacity: u32,
	hrmp_channel_max_total_size: u32,
	hrmp_max_parachain_inbound_channels: u32,
	hrmp_channel_max_message_size: u32,
	executor_params: Vec<ExecutorParam>,
	code_retention_period: u32,
	max_validators: Option<u32>,
	dispute_period: u32,
	dispute_post_conclusion_acceptance_period: u32,
	no_show_slots: u32,
	n_delay_tranches: u32,
	zeroth_delay_tranche_width: u32,
	needed_approvals: u32,
	relay_vrf_modulo_samples: u32,
	pvf_voting_ttl: u32,
	minimum_validation_upgrade_delay: u32,
	minimum_backing_votes: u32,
	node_features: Bits,
	approval_voting_params: u32,
	scheduler_params: SchedulerParams,
}

#[derive(Encode, Decode)]
struct HrmpChannel {
	max_capacity: u32,
	max_total_size: u32,
	max_message_size: u32,
	msg_count: u32,
	total_size: u32,
	mqc_head: Option<H256>,
	sender_deposit: u128,
	recipient_deposit: u128,
}

#[derive(Encode, Decode)]
enum ParaLifecycle {
	Onboarding,
	Parathread,
	Parachain,
	UpgradingParathread,
	DowngradingParachain,
	OffboardingParathread,
	OffboardingParachain,
}

#[derive(Encode, Decode)]
enum UpgradeGoAhead {
	Abort,
	GoAhead,
}

#[derive(Encode, Decode)]
enum UpgradeRestriction {
	Present,
}

#[derive(Encode, Decode)]
enum UmpQueueId {
	Para(Para),
}

#[derive(Encode, Decode)]
enum AggregateMessageOrigin {
	Ump(UmpQueueId),
}

#[derive(Encode, Decode)]
struct BookState {
	begin: u32,
	end: u32,
	count: u32,
	ready_neighbours: Option<(AggregateMessageOrigin, AggregateMessageOrigin)>,
	message_count: u64,
	size: u64,
}

#[derive(Encode, Decode)]
struct Page {
	remaining: u32,
	remaining_size: u32,
	first_index: u32,
	first: u32,
	last: u32,
	heap: Vec<u8>,
}

#[derive(Encode, Decode)]
struct DispatchEventInfo {
	weight: Weight,
	class: u8,
	pays_fee: u8,
}

#[derive(Encode, Decode)]
enum SystemEvent {
	#[codec(index = 0)]
	ExtrinsicSuccess(DispatchEventInfo),
	#[codec(index = 1)]
	ExtrinsicFailed(DispatchError, DispatchEventInfo),
	#[codec(index = 3)]
	NewAccount(AccountId32),
	#[codec(index = 4)]
	KilledAccount(AccountId32),
}

#[derive(Encode, Decode)]
enum BalancesEvent {
	#[codec(index = 0)]
	Endowed(AccountId32, u128),
	#[codec(index = 1)]
	DustLost(AccountId32, u128),
	#[codec(index = 2)]
	Transfer(AccountId32, AccountId32, u128),
	#[codec(index = 3)]
	BalanceSet(AccountId32, u128),
	#[codec(index = 7)]
	Deposit(AccountId32, u128),
	#[codec(index = 8)]
	Withdraw(AccountId32, u128),
	#[codec(index = 9)]
	Slashed(AccountId32, u128),
	#[codec(index = 10)]
	Minted(AccountId32, u128),
	#[codec(index = 12)]
	Burned(AccountId32, u128),
	#[codec(index = 24)]
	Held(HoldReason, AccountId32, u128),
	#[codec(index = 26)]
	TransferOnHold(HoldReason, AccountId32, AccountId32, u128),
	#[codec(index = 28)]
	Released(HoldReason, AccountId32, u128),
}

#[derive(Encode, Decode)]
enum SessionEvent {
	#[codec(index = 0)]
	NewSession(u32),
}

#[derive(Encode, Decode)]
enum InclusionEvent {
	#[codec(index = 3)]
	UpwardMessagesReceived(Para, u32),
	#[codec(index = 100)]
	CandidateRefused(Para, DispatchError),
}

#[derive(Encode, Decode)]
enum ParasEvent {
	#[codec(index = 3)]
	NewHeadNoted(Para),
	#[codec(index = 4)]
	ActionQueued(Para, u32),
}

#[derive(Encode, Decode)]
enum HrmpEvent {
	#[codec(index = 3)]
	ChannelClosed(Para, (Para, Para)),
	#[codec(index = 4)]
	HrmpChannelForceOpened(Para, Para, u32, u32),
}

#[derive(Encode, Decode)]
enum RegistrarEvent {
	#[codec(index = 0)]
	Registered(Para, AccountId32),
	#[codec(index = 1)]
	Deregistered(Para),
}

#[derive(Encode, Decode)]
enum ProcessMessageError {
	BadFormat,
	Corrupt,
	Unsupported,
	Overweight(Weight),
	Yield,
	StackLimitReached,
}

#[derive(Encode, Decode)]
enum MessageQueueEvent {
	#[codec(index = 0)]
	ProcessingFailed(H256, AggregateMessageOrigin, ProcessMessageError),
	#[codec(index = 1)]
	Processed(H256, AggregateMessageOrigin, Weight, bool),
	#[codec(index = 4)]
	OverweightDropped(H256, AggregateMessageOrigin, Weight),
}

#[derive(Encode, Decode)]
enum BroadcasterEvent {
	DataPublished(Para, Key, u32),
	PublisherRegistered(Para, AccountId32),
	PublisherDeregistered(Para),
	KeyExpired(Para, Key),
	KeysDeleted(Para, u32),
	KeysForcedDeleted(Para, u32),
}

#[derive(Encode, Decode)]
enum RuntimeEvent {
	#[codec(index = 0)]
	System(SystemEvent),
	#[codec(index = 5)]
	Balances(BalancesEvent),
	#[codec(index = 9)]
	Session(SessionEvent),
	#[codec(index = 53)]
	ParaInclusion(InclusionEvent),
	#[codec(index = 56)]
	Paras(ParasEvent),
	#[codec(index = 60)]
	Hrmp(HrmpEvent),
	#[codec(index = 70)]
	Registrar(RegistrarEvent),
	#[codec(index = 100)]
	MessageQueue(MessageQueueEvent),
	#[codec(index = 101)]
	Broadcaster(BroadcasterEvent),
}

#[derive(Encode, Decode)]
struct EventRecord {
	phase: Phase,
	event: RuntimeEvent,
	topics: Vec<H256>,
}

/// How the key after an item's prefix is hashed and what it decodes to.
enum Keys {
	None,
	Twox(fn(&mut &[u8]) -> bool),
	Blake(fn(&mut &[u8]) -> bool),
	TwoxTwice(fn(&mut &[u8]) -> bool, fn(&mut &[u8]) -> bool),
	Plain(fn(&mut &[u8]) -> bool),
}

/// Decodes all of a value and encodes it again.
type Again = fn(&[u8]) -> Result<Vec<u8>, String>;

fn again<T: Decode + Encode>(raw: &[u8]) -> Result<Vec<u8>, String> {
	T::decode_all(&mut &raw[..]).map(|value| value.encode()).map_err(|error| error.to_string())
}

fn takes<T: Decode>(input: &mut &[u8]) -> bool {
	T::decode(input).is_ok()
}

/// The second key of `ExpiryIndex` follows an expiry block in big endian.
fn expiry_key(input: &mut &[u8]) -> bool {
	takes::<[u8; 8]>(input) && takes::<(Para, Key)>(input)
}

type Item = (&'static str, Keys, Again);

fn items() -> BTreeMap<Vec<u8>, Item> {
	use Keys::{Blake, None, Plain, Twox, TwoxTwice};
	let para: fn(&mut &[u8]) -> bool = takes::<Para>;
	let list: Vec<Item> = vec![
		("System.Account", Blake(takes::<AccountId32>), again::<AccountInfo>),
		("System.BlockHash", Twox(takes::<u32>), again::<H256>),
		("System.BlockWeight", None, again::<PerDispatchClass>),
		("System.Digest", None, again::<Digest>),
		("System.EventCount", None, again::<u32>),
		("System.Events", None, again::<Vec<EventRecord>>),
		("System.ExecutionPhase", None, again::<Phase>),
		("System.ExtrinsicCount", None, again::<u32>),
		("System.Number", None, again::<u32>),
		("System.ParentHash", None, again::<H256>),
		("Babe.CurrentSlot", None, again::<u64>),
		("Balances.Holds", Blake(takes::<AccountId32>), again::<Vec<(HoldReason, u128)>>),
		("Balances.TotalIssuance", None, again::<u128>),
		("Broadcaster.CounterForRegisteredPublishers", None, again::<u32>),
		("Broadcaster.ExpiryIndex", Plain(expiry_key), again::<()>),
		("Broadcaster.PublishedKeys", Twox(para), again::<u32>),
		("Broadcaster.RegisteredPublishers", Twox(para), again::<(AccountId32, u128)>),
		("Broadcaster.TotalStorageSize", Twox(para), again::<u32>),
		("Broadcaster.TtlData", TwoxTwice(para, takes::<Key>), again::<(u32, u32)>),
		("Broadcaster.TtlLapMark", Twox(para), again::<Key>),
		("Broadcaster.TtlScanCursor", None, again::<(Para, Key, u32)>),
		("Configuration.ActiveConfig", None, again::<HostConfiguration>),
		("Configuration.PendingConfigs", None, again::<Vec<(u32, HostConfiguration)>>),
		("Dmp.DownwardMessageQueueHeads", Twox(para), again::<H256>),
		("Dmp.DownwardMessageQueues", Twox(para), again::<Vec<(u32, Vec<u8>)>>),
		("Hrmp.HrmpChannelContents", Twox(takes::<(Para, Para)>), again::<Vec<(u32, Vec<u8>)>>),
		("Hrmp.HrmpChannelDigests", Twox(para), again::<Vec<(u32, Vec<Para>)>>),
		("Hrmp.HrmpChannels", Twox(takes::<(Para, Para)>), again::<HrmpChannel>),
		("Hrmp.HrmpEgressChannelsIndex", Twox(para), again::<Vec<Para>>),
		("Hrmp.HrmpIngressChannelsIndex", Twox(para), again::<Vec<Para>>),
		("Hrmp.HrmpWatermarks", Twox(para), again::<u32>),
		("MessageQueue.BookStateFor", Twox(takes::<AggregateMessageOrigin>), again::<BookState>),
		("MessageQueue.Pages", TwoxTwice(takes::<AggregateMessageOrigin>, takes::<u32>), again::<Page>),
		("MessageQueue.ServiceHead", None, again::<AggregateMessageOrigin>),
		("Paras.ActionsQueue", Twox(takes::<u32>), again::<Vec<Para>>),
		("Paras.Heads", Twox(para), again::<Vec<u8>>),
		("Paras.MostRecentContext", Twox(para), again::<u32>),
		("Paras.ParaLifecycles", Twox(para), again::<ParaLifecycle>),
		("Paras.Parachains", None, again::<Vec<Para>>),
		("Paras.UpgradeGoAheadSignal", Twox(para), again::<UpgradeGoAhead>),
		("Paras.UpgradeRestrictionSignal", Twox(para), again::<UpgradeRestriction>),
		("Registrar.Paras", Twox(para), again::<(AccountId32, u128, Option<bool>)>),
		("Session.CurrentIndex", None, again::<u32>),
	];
	let prefix = |name: &str| name.split_once('.').map(|(pallet, item)| item_prefix(pallet, item)).unwrap_or_default();
	list.into_iter().map(|item| (prefix(item.0), item)).collect()
}

fn twox_key(rest: &mut &[u8], decode: fn(&mut &[u8]) -> bool) -> bool {
	let Some(plain) = rest.get(8..) else { return false };
	let mut after = plain;
	let read = decode(&mut after);
	let whole = rest.len() - after.len();
	let hashed = twox_64_concat(&plain[..plain.len() - after.len()]);
	let equal = read && rest[..whole] == hashed[..];
	*rest = after;
	equal
}

fn key_fits(keys: &Keys, mut rest: &[u8]) -> bool {
	let fits = match keys {
		Keys::None => true,
		Keys::Twox(decode) => twox_key(&mut rest, *decode),
		Keys::TwoxTwice(one, two) => twox_key(&mut rest, *one) && twox_key(&mut rest, *two),
		Keys::Plain(decode) => decode(&mut rest),
		Keys::Blake(decode) => {
			let hash = rest.get(..16).map(<[u8]>::to_vec);
			rest = rest.get(16..).unwrap_or_default();
			let plain = rest;
			let read = decode(&mut rest);
			read && hash.as_deref() == Some(&sp_crypto_hashing::blake2_128(&plain[..plain.len() - rest.len()])[..])
		},
	};
	fits && rest.is_empty()
}

/// Checks one relay state.
pub fn check(data: &Value, report: &mut Report) -> Result<(), String> {
	let name = text(data, "name")?;
	report.equal(name, "version", number(data, "version")?, 1);
	let state = field(data, "relay_state")?;
	let raw = bytes(state, "header")?;
	let header = Header::decode_all(&mut &raw[..]).map_err(|error| format!("header: {error}"))?;
	report.bytes(name, "header encoded again", &header.encode(), &raw);
	report.equal(name, "hash", header.hash(), crate::tries::hash(state, "hash")?);
	report.equal(name, "number", u64::from(header.number), number(state, "number")?);
	let mut top = entries(state, "entries")?;
	for child in list(state, "children")? {
		let key = bytes(child, "storage_key")?;
		let rows = entries(child, "entries")?;
		for (key, row) in &rows {
			report.equal(name, "length of a published key", key.len(), 32);
			value(report, name, "published entry", again::<PublishedEntry>, row);
		}
		top.push(([CHILD_PREFIX, &key].concat(), Version::V1.root(&rows).as_bytes().to_vec()));
	}
	report.equal(name, "state root", Version::V1.root(&top), header.state_root);
	rows(name, &top, report);
	body(name, &bytes_list(state, "extrinsics")?, header.extrinsics_root, report);
	Ok(())
}

/// `polkadot_core_primitives::OutboundHrmpMessage`.
#[derive(Encode, Decode)]
struct OutboundHrmpMessage {
	recipient: Para,
	data: Vec<u8>,
}

#[derive(Encode, Decode)]
struct CandidateCommitments {
	upward_messages: Vec<Vec<u8>>,
	horizontal_messages: Vec<OutboundHrmpMessage>,
	head_data: Vec<u8>,
	processed_downward_messages: u32,
	hrmp_watermark: u32,
}

#[derive(Encode, Decode)]
struct BackedCandidate {
	para: Para,
	relay_parent: u32,
	commitments: CandidateCommitments,
}

/// `ParaInclusion::enter`, as an extrinsic without signature in format version 5.
const ENTER: [u8; 3] = [5, 53, 0];

/// The block's body: its root, and the backed candidates with their headers and upward messages.
fn body(name: &str, extrinsics: &[Vec<u8>], root: H256, report: &mut Report) {
	report.equal(name, "extrinsics root", LayoutV0::<Blake2Hasher>::ordered_trie_root(extrinsics), root);
	for extrinsic in extrinsics {
		let Ok(inner) = Vec::<u8>::decode_all(&mut &extrinsic[..]) else {
			report.failure(name, "extrinsic", "its length prefix is wrong");
			continue;
		};
		let Some(call) = inner.strip_prefix(&ENTER) else { continue };
		value(report, name, "ParaInclusion.enter", again::<Vec<BackedCandidate>>, call);
		for candidate in Vec::<BackedCandidate>::decode_all(&mut &call[..]).unwrap_or_default() {
			value(report, name, "head of a parachain", again::<Header>, &candidate.commitments.head_data);
			for message in &candidate.commitments.upward_messages {
				let case = format!("{name}: upward message of {}", candidate.para);
				crate::xcm::check_message(&case, message, report);
			}
		}
	}
}

fn value(report: &mut Report, name: &str, what: &str, again: Again, raw: &[u8]) {
	match again(raw) {
		Err(error) => report.failure(name, what, &error),
		Ok(found) => report.bytes(name, what, &found, raw),
	}
}

fn rows(name: &str, top: &Entries, report: &mut Report) {
	let items = items();
	for (key, raw) in top {
		if key.starts_with(CHILD_PREFIX) {
			report.equal(name, "length of a child root", raw.len(), 32);
		} else if let Some(para) = key.strip_prefix(b":relay_dispatch_queue_remaining_capacity") {
			report.equal(name, "length of a para id", para.len(), 4);
			value(report, name, ":relay_dispatch_queue_remaining_capacity", again::<(u32, u32)>, raw);
		} else if let Some((item, keys, again)) = key.get(..32).and_then(|prefix| items.get(prefix)) {
			report.equal(name, &format!("key of {item}"), key_fits(keys, &key[32..]), true);
			value(report, name, item, *again, raw);
		} else {
			report.failure(name, &format!("0x{}", hex::encode(key)), "no storage item that this program knows");
		}
	}
}
