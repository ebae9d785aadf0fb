/// Subscribes to `org.example.price`, takes each event once and in order, and asks for what is missing.
import Array "mo:core/Array";
import Map "mo:core/Map";
import List "mo:core/List";
import Nat "mo:core/Nat";
import Principal "mo:core/Principal";
import Text "mo:core/Text";
import Timer "mo:core/Timer";
import Icrc72 "Icrc72";

persistent actor class Subscriber(orchestrator : Principal) = me {
  let handled = List.empty<Nat>();
  let last = Map.empty<Text, Nat>();
  let valid = Map.empty<Text, ()>();
  let held = Map.empty<Text, Icrc72.Notification>();
  var missing = 0;
  var asked = 0;
  transient let registry = Icrc72.orchestrator(orchestrator);
  transient let alerts = "icrc72:subscriber:sys:" # Principal.fromActor(me).toText();

  func begin() : async () {
    let #list(found) = await registry.icrc72_get_valid_broadcasters();
    for (who in found.values()) { valid.add(who.toText(), ()) };
    ignore await registry.icrc72_register_subscription([Icrc72.item(alerts, []), Icrc72.item("org.example.price", [])]);
    asked := 0; // what is still missing is asked for again
  };
  ignore Timer.setTimer<system>(#seconds 0, begin);
  ignore Timer.recurringTimer<system>(#seconds 60, begin);

  /// Takes an event after the one before it; one that comes too early is held.
  func take(event : Icrc72.Notification) {
    let chain = event.namespace # " " # event.source.toText() # " ";
    switch (last.get(chain)) {
      case (?known) if (event.eventId <= known) return;
      case null {}; // the first event of a chain, which may have the id 0
    };
    switch (last.get(chain), event.prevEventId) {
      case (?known, ?before) if (before > known) { missing := known + 1; return held.add(chain # before.toText(), event) };
      case _ {};
    };
    handled.add(event.eventId);
    last.add(chain, event.eventId);
    switch (held.take(chain # event.eventId.toText())) { case (?next) take(next); case null {} };
  };

  public shared ({ caller }) func icrc72_handle_notification(events : [Icrc72.Notification]) : () {
    if (caller != orchestrator and not valid.containsKey(caller.toText())) return await begin();
    for (event in events.values()) { if (event.namespace != alerts) take(event) };
    Icrc72.broadcaster(caller).icrc72_confirm_notifications(events.map(func each = each.notificationId));
    if (missing == asked) return;
    asked := missing;
    let range = (missing, null);
    ignore await registry.icrc77_register_replay([{ namespace = "org.example.price"; range; config = []; memo = null }]);
  };

  public query func icrc72_get_subscriber_stats() : async Icrc72.Map {
    [("icrc72:subscriber:stats:notifications", #Nat(handled.size()))];
  };

  public query func ids() : async [Nat] { handled.toArray() };
};
