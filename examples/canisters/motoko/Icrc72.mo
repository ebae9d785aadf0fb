/// The parts of ICRC-72 and ICRC-77 that the examples use.
import Array "mo:core/Array";
import Nat "mo:core/Nat";
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

  /// How many items are Ok before the first that is not.
  public func accepted<T>(results : Results<T>) : Nat {
    var count = 0;
    for (each in results.values()) { let ?#Ok _ = each else return count; count += 1 };
    count;
  };

  /// The entries of alerts under one key, each with its parts.
  public func entries(alerts : [Notification], key : Text) : [[Value]] {
    alerts.flatMap(func alert {
      let #Map(pairs) = alert.data else return [].values();
      pairs.filter(func pair = pair.0 == key).flatMap(func pair = parts(pair.1).map(parts).values()).values();
    });
  };

  /// The items of an array; anything else is the only part.
  public func parts(value : Value) : [Value] { switch value { case (#Array(found)) found; case one [one] } };

  /// The value under a key of a map, if it is there.
  public func find(map : ?Map, key : Text) : ?Value {
    let ?pairs = map else return null;
    let ?(_, value) = pairs.find(func pair = pair.0 == key) else return null;
    ?value;
  };

  // What broadcasters and orchestrators say to each other, and answer

  public type Failure = {
    #Unauthorized; #NotFound; #Busy; #ImproperId : Text; #ImproperConfig : Text; #CannotCancel : Text;
    #UnauthorizedPublisher : { namespace : Text }; #UnauthorizedSubscriber : { namespace : Text }; #RangeTooLarge : Text;
    #PublicationNotFound; #SubscriptionNotFound; #GenericError : { error_code : Nat; message : Text };
    #GenericBatchError : Text;
  };
  public type Answer<T> = { #Ok : T; #Err : Failure };
  public type Answers<T> = [?Answer<T>];
  public type Confirmed = { #allAccepted; #itemized : [?{ #Ok; #Err : Failure }] };
  public type Slice = { #BySubscriber : Principal; #ByPublisher : Principal; #ByBroadcaster : Principal; #ByNamespace : Text };
  public type Filter = { statistics : { #None; #All; #List : [Text] }; slice : [Slice] };
  public type Page<T> = { prev : ?T; take : ?Nat; filter : ?Filter };
  public type Subscription = { subscriptionId : Nat; namespace : Text; config : Map; stats : Map };
  public type Publication = { publicationId : Nat; namespace : Text; config : Map; stats : Map };
  public type Receiver = actor { icrc72_handle_notification : [Notification] -> () };

  public func receiver(who : Principal) : Receiver = actor (Principal.toText(who));
  public func generic(error_code : Nat, message : Text) : Failure = #GenericError({ error_code; message });

  /// The answer to each of the first hundred items, and to the batch where there are more.
  public func answers<I, T>(items : [I], one : I -> Answer<T>) : Answers<T> {
    let found = items.sliceToArray(0, Nat.min(items.size(), 100)).map(func item = ?one(item));
    if (items.size() > 100) found.concat([?#Err(#GenericBatchError("at most 100 items are answered"))]) else found;
  };

  /// Whether an id passes `Array[Nat mod, opt Nat offset]`.
  public func passesSkip(id : Nat, skip : Value) : Bool {
    let items = parts(skip);
    let #Nat every = items[0] else return true;
    let offset = if (items.size() < 2) 0 else switch (items[1]) { case (#Nat number or #Option(?#Nat number)) number; case _ 0 };
    id % every == offset;
  };
};
