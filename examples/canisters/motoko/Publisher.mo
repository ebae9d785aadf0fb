/// Publishes prices under `org.example.price`, keeps its log, and replays what is asked for.
import Array "mo:core/Array";
import Int "mo:core/Int";
import List "mo:core/List";
import Principal "mo:core/Principal";
import Time "mo:core/Time";
import Timer "mo:core/Timer";
import Icrc72 "Icrc72";

persistent actor class Publisher(orchestrator : Principal) = me {
  let log = List.empty<Icrc72.Event>();
  var sent = 0;
  var entry : ?Principal = null;
  transient var busy = false;
  transient let registry = Icrc72.orchestrator(orchestrator);

  func begin() : async () {
    ignore await registry.icrc72_register_subscription([Icrc72.item("icrc72:publisher:sys:" # Principal.fromActor(me).toText(), [])]);
    ignore await registry.icrc72_register_publication([Icrc72.item("org.example.price", [("icrc77:replay", #Bool true)])]);
  };

  func send() : async () { // what is refused, or lost, is sent again a second later
    let ?who = entry else return;
    if (busy or sent == log.size()) return;
    busy := true;
    let batch = log.sliceToArray(sent, Int.min(sent + 50, log.size()));
    try { sent += Icrc72.accepted(await Icrc72.broadcaster(who).icrc72_publish(batch)) } catch _ {};
    busy := false;
  };
  ignore Timer.setTimer<system>(#seconds 0, begin);
  ignore Timer.recurringTimer<system>(#seconds 60, begin);
  ignore Timer.recurringTimer<system>(#seconds 1, send);

  public func publish(price : Nat) : async Nat {
    log.add(Icrc72.event(log.size() + 1, "org.example.price", #Nat price, Principal.fromActor(me), Int.abs(Time.now())));
    log.size();
  };

  func replay(id : Nat, from : Nat, end : ?Icrc72.Value, who : Principal) : async () {
    let to = switch end { case (?#Nat number) number; case _ log.size() + 1 };
    let range = log.toArray().filter(func e = e.eventId >= from and e.eventId < to);
    ignore await registry.icrc77_replay_status([{ replayId = id; status = #running }]);
    ignore await Icrc72.broadcaster(who).icrc72_publish(range.map(func e = Icrc72.replayed(e, id, to - 1 : Nat)));
    ignore await registry.icrc77_replay_status([{ replayId = id; status = #completed(range.size()) }]);
  };

  public shared ({ caller }) func icrc72_handle_notification(told : [Icrc72.Notification]) : () {
    if (caller != orchestrator and not (await Icrc72.isBroadcaster(registry, caller))) return;
    Icrc72.broadcaster(caller).icrc72_confirm_notifications(told.map(func each = each.notificationId));
    for (each in Icrc72.entries(told, "icrc72:publisher:broadcaster:add").values()) {
      switch (each[1]) { case (#Blob who) entry := ?who.fromBlob(); case _ {} };
    };
    for (each in Icrc72.entries(told, "icrc77:publisher:replay:add").values()) {
      let (#Nat id, #Nat from, #Option end, #Blob who) = (each[0], each[2], each[3], each[4]) else return;
      await replay(id, from, end, who.fromBlob());
    };
  };
  public query func published() : async Nat { sent };
};
