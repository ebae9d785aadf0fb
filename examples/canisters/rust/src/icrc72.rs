//! The parts of ICRC-72 and ICRC-77 that a subscriber uses. Fields that are not named here are passed over.
#![allow(non_snake_case, non_camel_case_types)]
use candid::{CandidType, Deserialize, Empty, Nat, Principal};

pub type Config = Vec<(String, Empty)>; // an empty one, of any type
#[derive(CandidType)]
pub struct Registration {
    pub namespace: String,
    pub config: Config,
    pub memo: Option<Vec<u8>>,
}
#[derive(CandidType)]
pub struct Replay {
    pub namespace: String,
    pub range: (Nat, Option<Nat>),
    pub config: Config,
    pub memo: Option<Vec<u8>>,
}
#[derive(CandidType, Deserialize, Clone)]
pub struct Notification {
    pub notificationId: Nat,
    pub eventId: Nat,
    pub prevEventId: Option<Nat>,
    pub namespace: String,
    pub source: Principal,
}
#[derive(CandidType, Deserialize)]
pub enum Brokers {
    list(Vec<Principal>),
}
#[derive(CandidType)]
pub enum Value {
    Nat(usize),
}

/// The notifications of a message: with much data, which is passed over, they cost more than a decoder allows by itself.
pub fn notifications(bytes: Vec<u8>) -> Vec<Notification> {
    let mut config = candid::DecoderConfig::new();
    config.set_skipping_quota(10_000_000);
    candid::utils::decode_one_with_config(&bytes, &config).unwrap()
}

pub fn item(namespace: String) -> Registration {
    Registration { namespace, config: vec![], memo: None }
}

impl Replay {
    pub fn since(first: Nat) -> Self {
        Replay { namespace: "org.example.price".into(), range: (first, None), config: vec![], memo: None }
    }
}

impl Value {
    pub fn count(handled: usize) -> Vec<(String, Value)> {
        vec![("icrc72:subscriber:stats:notifications".into(), Value::Nat(handled))]
    }
}
