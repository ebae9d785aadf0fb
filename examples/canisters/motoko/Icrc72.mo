/// The parts of ICRC-72 and ICRC-77 that the two examples use.
import Array "mo:core/Array";
import Principal "mo:core/Principal";

module {
  public type Value = {
    #Array : [Value]; #Blob : Blob; #Bool : Bool; #Bytes : [Nat8]; #Class : [Property]; #Float : Float;
    #Floats : [Float]; #Int : Int; #Int8 : Int8; #Int16 : Int16; #Int32 : Int32; #Int64 : Int64; #Map : Map;
    #ValueMap : [(Value, Value)]; #Nat : Nat; #Nat8 : Nat8; #Nat16 : Nat16; #Nat32 : Nat32; #Nat64 : Nat64;
    #Nats : [Nat]; #Option : ?Value; #Principal : Principal; #Set : [Value]; #Text : Text;
  };
  public type Property = { name : Text; value : Value; immutable : Bool };
  public type Map = [(Text, Value)];
  public type Event = {
    eventId : Nat; prevEventId : ?Nat; timestamp : Nat; namespace : Text; data : Value; source : Principal; headers : ?Map;
  };
  public type Notification = {
    notificationId : Nat; eventId : Nat; prevEventId : ?Nat; timestamp : Nat; namespace : Text; data : Value;
    headers : ?Map; source : Principal; filter : ?Text;
  };
  public type Registration = { namespace : Text; config : Map; memo : ?Blob };
  public type Replay = { namespace : Text; range : (Nat, ?Nat); config : Map; memo : ?Blob };
  public type State = { #pending; #running; #completed : Nat; #canceled : Nat; #errored : Text };
  public type Results<T> = [?{ #Ok : T; #Err }];

  public type Orchestrator = actor {
    icrc72_register_publication : [Registration] -> async Results<Nat>;
    icrc72_register_subscription : [Registration] -> async Results<Nat>;
    icrc72_get_valid_broadcasters : () -> async { #list : [Principal] };
    icrc77_register_replay : [Replay] -> async Results<Nat>;
    icrc77_replay_status : [{ replayId : Nat; status : State }] -> async Results<Nat>;
  };
  public type Broadcaster = actor {
    icrc72_publish : [Event] -> async Results<[Nat]>;
    icrc72_confirm_notifications : [Nat] -> ();
  };

  public func orchestrator(who : Principal) : Orchestrator = actor (Principal.toText(who));
  public func broadcaster(who : Principal) : Broadcaster = actor (Principal.toText(who));
  public func item(namespace : Text, config : Map) : Registration = { namespace; config; memo = null };

  /// Whether the orchestrator says that `who` may notify.
  public func isBroadcaster(registry : Orchestrator, who : Principal) : async Bool {
    let #list(valid) = await registry.icrc72_get_valid_broadcasters();
    valid.any(func each = each == who);
  };

  /// An event whose ids count up from 1.
  public func event(eventId : Nat, namespace : Text, data : Value, source : Principal, timestamp : Nat) : Event {
    let prevEventId = if (eventId == 1) null else ?(eventId - 1 : Nat);
    { eventId; prevEventId; timestamp; namespace; data; source; headers = null };
  };

  /// An event with the headers of a replay.
  public func replayed(event : Event, id : Nat, end : Nat) : Event {
    let marks : Map = [("icrc77:replay", #Bool true), ("icrc77:replay:id", #Nat id), ("icrc77:replay:end_id", #Nat end)];
    { event with headers = ?marks };
  };

  /// The entries of alerts under one key, each with its parts.
  public func entries(alerts : [Notification], key : Text) : [[Value]] {
    alerts.flatMap(func alert {
      let #Map(pairs) = alert.data else return [].values();
      pairs.filter(func pair = pair.0 == key).flatMap(func pair = parts(pair.1).map(parts).values()).values();
    });
  };

  func parts(value : Value) : [Value] { let #Array(found) = value else return []; found };
};
