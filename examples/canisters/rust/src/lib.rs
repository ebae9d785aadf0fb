//! Subscribes to `org.example.price`, takes each event once and in order, and asks for what is missing.
#![allow(non_snake_case)]
mod icrc72;
use candid::{CandidType, Deserialize, Nat, Principal};
use ic_cdk::{api, call::Call, init, post_upgrade, pre_upgrade, query, storage, update};
use icrc72::{item, Brokers, Notification, Replay, Value};
use std::{cell::RefCell, collections::BTreeMap, time::Duration};

#[derive(CandidType, Deserialize, Default)]
struct State {
    orchestrator: Option<Principal>, valid: Vec<Principal>, handled: Vec<Nat>, missing: Nat, asked: Nat,
    last: BTreeMap<(String, Principal), Nat>, held: BTreeMap<(String, Principal, Nat), Notification>,
}
thread_local! { static STATE: RefCell<State> = RefCell::default() }
fn with<T>(run: impl FnOnce(&mut State) -> T) -> T { STATE.with_borrow_mut(run) }
fn alerts() -> String { format!("icrc72:subscriber:sys:{}", api::canister_self()) }
async fn begin() {
    let orchestrator = with(|state| state.orchestrator.unwrap());
    let told = Call::unbounded_wait(orchestrator, "icrc72_get_valid_broadcasters").await;
    if let Some(Brokers::list(found)) = told.ok().and_then(|told| told.candid().ok()) { with(|state| state.valid = found) }
    let items = [alerts(), "org.example.price".into()].map(item);
    let _ = Call::unbounded_wait(orchestrator, "icrc72_register_subscription").with_arg(items).await;
    with(|state| state.asked = Nat::default()); // what is still missing is asked for again
}
fn start(state: State) {
    STATE.set(state);
    ic_cdk_timers::set_timer(Duration::ZERO, begin());
    ic_cdk_timers::set_timer_interval(Duration::from_secs(60), begin);
}
#[init] fn init(who: Principal) { start(State { orchestrator: Some(who), ..State::default() }) }
#[pre_upgrade] fn save() { storage::stable_save((STATE.take(),)).unwrap() }
#[post_upgrade] fn restore(_who: Principal) { start(storage::stable_restore::<(State,)>().unwrap().0) }

/// Takes an event after the one before it; one that comes too early is held.
fn take(state: &mut State, event: Notification) {
    let (name, source, id) = (event.namespace.clone(), event.source, event.eventId.clone());
    // The first event of a chain, for which none is known, may have the id 0.
    match (state.last.get(&(name.clone(), source)).cloned(), event.prevEventId.clone()) {
        (Some(known), _) if id <= known => return,
        (Some(known), Some(before)) if before > known => { state.missing = known + 1u8; state.held.insert((name, source, before), event); }
        _ => {
            state.handled.push(id.clone());
            state.last.insert((name.clone(), source), id.clone());
            if let Some(next) = state.held.remove(&(name, source, id)) { take(state, next) }
        }
    }
}
#[update(decode_with = "icrc72::notifications")] async fn icrc72_handle_notification(events: Vec<Notification>) {
    let (caller, orchestrator) = (api::msg_caller(), with(|state| state.orchestrator.unwrap()));
    if caller != orchestrator && !with(|state| state.valid.contains(&caller)) { return begin().await }
    let ids: Vec<Nat> = events.iter().map(|each| each.notificationId.clone()).collect();
    events.into_iter().filter(|each| each.namespace != alerts()).for_each(|each| with(|state| take(state, each)));
    let _ = Call::unbounded_wait(caller, "icrc72_confirm_notifications").with_arg(ids).oneway();
    let missing = with(|state| state.missing.clone());
    if with(|state| std::mem::replace(&mut state.asked, missing.clone())) == missing { return }
    let _ = Call::unbounded_wait(orchestrator, "icrc77_register_replay").with_arg([Replay::since(missing)]).await;
}
#[query] fn icrc72_get_subscriber_stats() -> Vec<(String, Value)> { Value::count(with(|state| state.handled.len())) }
#[query] fn ids() -> Vec<Nat> { with(|state| state.handled.clone()) }
