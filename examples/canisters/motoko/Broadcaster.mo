/// Takes events, and notifies and relays those of each publisher and partition in order until they are confirmed.
import Array "mo:core/Array";
import Int "mo:core/Int";
import Iter "mo:core/Iter";
import List "mo:core/List";
import Map "mo:core/Map";
import Nat "mo:core/Nat";
import Principal "mo:core/Principal";
import Queue "mo:core/Queue";
import Text "mo:core/Text";
import Time "mo:core/Time";
import Filter "Filter";
import Icrc72 "Icrc72";

persistent actor class Broadcaster(orchestrator : Principal) = me {
  type Event = Icrc72.Event;
  type Note = { id : Nat; event : Event; filter : ?Text; prev : ?Nat; size : Nat };
  /// What waits for a subscriber: one batch is under way, and goes again until it is confirmed.
  type Mailbox = { waiting : Queue.Queue<Note>; var out : [Note]; var tries : Nat; var next : Int; prev : Map.Map<Text, Nat> };
  /// The last event of a namespace, source, partition and caller, and the data of the newest thousand by id.
  type Chain = { var last : Nat; seen : Map.Map<Nat, Icrc72.Value> };
  /// Events on their way to another broadcaster.
  type Lane = { target : Principal; waiting : Queue.Queue<Event>; var prev : ?Nat; var tries : Nat; var next : Int };
  type Wanted = { id : Nat; filter : ?Text; skip : Icrc72.Value };
  type Replay = { namespace : Text; from : Principal; to : Principal; wanted : Wanted; publisher : ?Principal; var next : Nat }; // the lowest id that may come
  type Registry = actor {
    icrc72_register_subscription : [Icrc72.Registration] -> async Icrc72.Results<Nat>;
    icrc72_confirm_notifications : [Nat] -> ();
    icrc72_get_subscriptions : query Icrc72.Page<Nat> -> async [Icrc72.Subscription];
    icrc72_get_publications : query Icrc72.Page<Text> -> async [Icrc72.Publication];
  };

  let publishers = Map.empty<Text, ()>();
  let relayers = Map.empty<Text, ()>();
  let subscribers = Map.empty<Text, Map.Map<Principal, [Wanted]>>();
  let relays = Map.empty<Text, Map.Map<Text, Map.Map<Text, ()>>>(); // of a namespace, its targets, and for whom
  let lanes = Map.empty<Text, Lane>();
  let partitions = Map.empty<Text, Nat>(); // how many a namespace has
  let chains = Map.empty<Text, Chain>();
  let callers = Map.empty<Text, Principal>(); // who brought the last event of a chain
  let boxes = Map.empty<Principal, Mailbox>();
  let owners = Map.empty<Nat, Principal>();
  let alerted = Map.empty<Text, Nat>(); // the last system event of a subscriber
  let delivered = Map.empty<Nat, Replay>();
  let forwarded = Map.empty<Nat, Replay>();
  var notes = 0;
  var own = 0;
  var applied = 0;
  var events = 0;
  var confirmations = 0;
  var registered = false; // an orchestrator takes who registers again for one that lost its state
  transient var registering = false;
  transient var pulling = false;
  transient var pulled = 0; // the alert whose details are being asked for, and those that came
  transient let wantedBy = Map.empty<Text, [Wanted]>();
  transient let divided = Map.empty<Text, Nat>();
  transient let busy = Map.empty<Text, ()>();
  transient let self = Principal.fromActor(me);
  transient let registry : Registry = actor (orchestrator.toText());
  transient let alerts = "icrc72:broadcaster:sys:" # self.toText();
  transient let mostQueued = 10_000;
  transient let mostBytes = 1_800_000;

  func now() : Nat = Int.abs(Time.now());
  func wait(tries : Nat) : Int = Time.now() + 1_000_000_000 * Nat.min(64, 4 * 2 ** Nat.min(tries, 4));
  func bytes(event : Event) : Nat { let raw = to_candid (event); raw.size() };
  func pair(namespace : Text, who : Principal) : Text = namespace # " " # who.toText();
  func box(who : Principal) : Mailbox {
    switch (boxes.get(who)) { case (?found) return found; case null {} };
    let made : Mailbox = { waiting = Queue.empty(); var out = []; var tries = 0; var next = 0; prev = Map.empty() };
    boxes.add(who, made);
    made;
  };

  // Publishing

  public shared ({ caller }) func icrc72_publish(batch : [Event]) : async Icrc72.Answers<[Nat]> =
    async Icrc72.answers<Event, [Nat]>(batch, func event = publish(caller, event));

  func publish(caller : Principal, event : Event) : Icrc72.Answer<[Nat]> {
    if (event.namespace.startsWith(#text "icrc72:")) return passOn(caller, event);
    let direct = caller == event.source;
    let brought = event.headers;
    if (direct and planted(brought)) return #Err(#Unauthorized);
    if (bytes(event) > 1_100_000) return #Err(Icrc72.generic(4, "too large"));
    let stamped = { event with headers = ?stamp(brought, direct) };
    switch (Icrc72.find(brought, "icrc77:replay:id")) {
      case (?#Nat number) return replayed(caller, number, event, stamped);
      case _ {};
    };
    let place = pair(event.namespace, caller);
    if (not (if direct publishers.containsKey(place) else relayers.containsKey(place))) return #Err(#Unauthorized);
    let parts = switch (partitions.get(event.namespace)) { case (?number) number; case null 1 };
    let part = event.eventId % 2 ** 64 % parts;
    if (not fits(brought, part, parts)) return #Err(#ImproperId("it belongs to partition " # part.toText()));
    let source = pair(event.namespace, event.source) # " " # part.toText();
    let key = pair(source, caller);
    let relayedPrev = switch (Icrc72.find(brought, "icrc72:relay:prev")) { case (?#Nat id) ?id; case _ null };
    let prev = if direct event.prevEventId else relayedPrev;
    let begins = callers.get(source) != ?caller or (prev == null and not direct);
    switch (chains.get(key)) {
      case (?chain) {
        if (chain.seen.get(event.eventId) == ?event.data) return #Ok([]);
        if (event.eventId <= chain.last) return #Err(#ImproperId("the last id was " # chain.last.toText()));
        if (prev != null and prev != ?chain.last) return #Err(#ImproperId("the former event was " # chain.last.toText()));
        remember(chain, event);
      };
      case null {
        let chain : Chain = { var last = 0; seen = Map.empty() };
        chains.add(key, chain);
        remember(chain, event);
      };
    };
    callers.add(source, caller);
    events += 1;
    let made = List.empty<Nat>();
    for ((who, wanted) in entriesOf(subscribers.get(event.namespace))) {
      if (begins) box(who).prev.remove(source);
      switch (wanted.find(func each = passes(each, event))) {
        case (?each) switch (queue(who, stamped, each.filter, ?source)) { case (?id) made.add(id); case null {} };
        case null {};
      };
    };
    if (direct) for ((target, _) in entriesOf(relays.get(event.namespace))) {
      let there = Principal.fromText(target);
      let line = lane(pair(source, there), there);
      let marks : Icrc72.Map = switch (line.prev) { case (?id) [("icrc72:relay:prev", #Nat id)]; case null [] };
      line.waiting.pushBack(relayed(stamped, marks));
      line.prev := ?event.eventId;
    };
    #Ok(made.toArray());
  };

  func entriesOf<K, V>(map : ?Map.Map<K, V>) : { next : () -> ?(K, V) } {
    switch map { case (?found) found.entries(); case null { { next = func() : ?(K, V) = null } } };
  };
  func planted(headers : ?Icrc72.Map) : Bool {
    let ?pairs = headers else return false;
    pairs.any(func(key, _) = key.startsWith(#text "icrc72:broadcaster") or key.startsWith(#text "icrc72:relay"));
  };
  /// Whether the header of the partition, if there is one, names this one.
  func fits(headers : ?Icrc72.Map, part : Nat, parts : Nat) : Bool {
    switch (Icrc72.find(headers, "icrc72:publisher:partition")) {
      case (?header) Icrc72.parts(header) == [#Nat part, #Nat parts];
      case null true;
    };
  };
  func stamp(headers : ?Icrc72.Map, direct : Bool) : Icrc72.Map {
    let name = if direct "icrc72:broadcaster" else "icrc72:relay";
    let mine : Icrc72.Map = [(name # ":received", #Nat(now())), (name, #Blob(self.toBlob()))];
    (switch headers { case (?pairs) pairs; case null [] }).concat(mine);
  };
  func relayed(event : Event, marks : Icrc72.Map) : Event {
    let ?headers = event.headers else return event;
    { event with headers = ?headers.concat([("icrc72:relay:sent", #Nat(now()))]).concat(marks) };
  };
  func remember(chain : Chain, event : Event) {
    chain.last := event.eventId;
    chain.seen.add(event.eventId, event.data);
    if (chain.seen.size() > 1000) { let ?(oldest, _) = chain.seen.minEntry() else return; chain.seen.remove(oldest) };
  };
  func passes(wanted : Wanted, event : Event) : Bool {
    let filtered = switch (wanted.filter) { case (?text) Filter.passes(text, event.data); case null true };
    filtered and Icrc72.passesSkip(event.eventId, wanted.skip);
  };

  /// A system event of the orchestrator for one whom this broadcaster serves.
  func passOn(caller : Principal, event : Event) : Icrc72.Answer<[Nat]> {
    let served = switch (subscribers.get(event.namespace)) { case (?found) found.keys().next(); case null null };
    let ?who = served else return #Err(#Unauthorized);
    if (caller != orchestrator or event.source != caller) return #Err(#Unauthorized);
    let known = switch (alerted.get(event.namespace)) { case (?number) number; case null 0 };
    if (event.eventId <= known) return #Ok([]);
    let ?id = queue(who, event, null, null) else return #Err(#Busy);
    alerted.add(event.namespace, event.eventId);
    #Ok([id]);
  };

  func replayed(caller : Principal, number : Nat, event : Event, stamped : Event) : Icrc72.Answer<[Nat]> {
    let (way, here) = switch (delivered.get(number), forwarded.get(number)) {
      case (?found, _) (found, true);
      case (null, ?found) (found, false);
      case _ return #Err(#Unauthorized);
    };
    let publishes = caller == event.source and publishers.containsKey(pair(event.namespace, caller));
    let handed = if (way.from == self) publishes else caller == way.from;
    let named = way.publisher == null or way.publisher == ?event.source;
    if (not handed or not named or event.namespace != way.namespace) return #Err(#Unauthorized);
    if (event.eventId < way.next) return #Ok([]);
    if (passes(way.wanted, event)) {
      if here {
        let ?id = queue(way.to, stamped, way.wanted.filter, null) else return #Err(#Busy);
        way.next := event.eventId + 1;
        return #Ok([id]);
      };
      lane("replay " # number.toText(), way.to).waiting.pushBack(relayed(stamped, []));
    };
    way.next := event.eventId + 1;
    #Ok([]);
  };

  // Notifying

  /// Queue an event for a subscriber. One that is full loses it, which shows in the next event of the chain.
  func queue(who : Principal, event : Event, filter : ?Text, chain : ?Text) : ?Nat {
    let mine = box(who);
    let prev = switch chain { case (?key) mine.prev.get(key); case null null };
    if (mine.waiting.size() >= mostQueued) {
      switch chain { case (?key) mine.prev.remove(key); case null {} };
      return null;
    };
    switch chain { case (?key) mine.prev.add(key, event.eventId); case null {} };
    notes += 1;
    mine.waiting.pushBack({ id = notes; event; filter; prev; size = bytes(event) + 300 });
    owners.add(notes, who);
    ?notes;
  };

  func notification(note : Note) : Icrc72.Notification {
    let event = note.event;
    let marks : Icrc72.Map = switch (note.prev) { case (?id) [("icrc72:broadcaster:prev", #Nat id)]; case null [] };
    let (time, sent) = (("icrc72:event:timestamp", #Nat(event.timestamp)), ("icrc72:broadcaster:sent", #Nat(now())));
    let headers = switch (event.headers) {
      case (?pairs) ?pairs.concat([time]).concat(marks).concat([sent]);
      case null null;
    };
    { event with notificationId = note.id; filter = note.filter; headers };
  };

  /// The batch that is to be sent now: a new one, or that under way again.
  func due(mine : Mailbox) : [Icrc72.Notification] {
    if (mine.out.size() == 0) {
      let batch = List.empty<Note>();
      var size = 0;
      label filling loop {
        let ?note = mine.waiting.peekFront() else break filling;
        size += note.size;
        if (batch.size() == 100 or (batch.size() > 0 and size > mostBytes)) break filling;
        batch.add(note);
        ignore mine.waiting.popFront();
      };
      mine.out := batch.toArray();
      mine.tries := 0;
    } else if (Time.now() < mine.next) return [];
    mine.next := wait(mine.tries);
    mine.tries += 1;
    mine.out.map(notification);
  };

  public shared ({ caller }) func icrc72_confirm_notifications(numbers : [Nat]) : async Icrc72.Confirmed {
    let found = Icrc72.answers<Nat, ()>(numbers, func number = confirm(caller, number));
    if (found.all(func each = each == ?#Ok)) #allAccepted else #itemized(found);
  };

  func confirm(caller : Principal, number : Nat) : Icrc72.Answer<()> {
    let ?who = owners.get(number) else return #Err(#NotFound);
    if (who != caller) return #Err(#Unauthorized);
    let mine = box(who);
    if (not mine.out.any(func note = note.id == number)) return #Err(#NotFound);
    mine.out := mine.out.filter(func note = note.id != number);
    owners.remove(number);
    confirmations += 1;
    #Ok;
  };

  // Relaying

  func lane(key : Text, target : Principal) : Lane {
    switch (lanes.get(key)) { case (?found) return found; case null {} };
    let made : Lane = { target; waiting = Queue.empty(); var prev = null; var tries = 0; var next = 0 };
    lanes.add(key, made);
    made;
  };

  func pump(key : Text, line : Lane) : async () {
    if (busy.containsKey(key)) return;
    busy.add(key, ());
    let batch = List.empty<Event>();
    var size = 0;
    label filling for (event in line.waiting.values()) {
      size += bytes(event);
      if (batch.size() == 100 or (batch.size() > 0 and size > mostBytes)) break filling;
      batch.add(event);
    };
    line.next := wait(line.tries);
    line.tries += 1;
    try {
      label taking for (result in (await Icrc72.broadcaster(line.target).icrc72_publish(batch.toArray())).values()) {
        let ?#Ok _ = result else break taking;
        ignore line.waiting.popFront();
        line.tries := 0;
        line.next := 0;
      };
    } catch _ {};
    busy.remove(key);
  };

  // Assignments

  public shared ({ caller }) func icrc72_handle_notification(told : [Icrc72.Notification]) : () {
    if (caller != orchestrator) return;
    for (each in told.values()) {
      if (each.namespace == alerts and each.eventId > applied and not pulling) {
        pulling := true;
        try { await apply(each) } catch _ {};
        pulling := false;
      };
      if (each.namespace == alerts and each.eventId <= applied) registry.icrc72_confirm_notifications([each.notificationId]);
    };
  };

  /// Ask at once for the subscriptions and partitions that an alert adds, and return whether all are known.
  /// What came stays until another alert is due, so that only what was refused is asked for again.
  func pull(alert : Icrc72.Notification) : async Bool {
    if (pulled != alert.eventId) { pulled := alert.eventId; wantedBy.clear(); divided.clear() };
    let subscriptions = List.empty<(Text, async [Icrc72.Subscription])>();
    let publications = Map.empty<Text, async [Icrc72.Publication]>();
    for (role in ["subscriber", "publisher", "relayer"].values()) {
      for (entry in Icrc72.entries([alert], "icrc72:broadcaster:" # role # ":add").values()) {
        let (#Text namespace, #Blob blob) = (entry[0], entry[1]) else return false;
        let who = blob.fromBlob();
        let key = pair(namespace, who);
        let own = namespace.startsWith(#text "icrc72:");
        if (not own and role == "subscriber" and not wantedBy.containsKey(key)) {
          let filter = ?{ statistics = #None; slice = [#BySubscriber who, #ByNamespace namespace] };
          subscriptions.add((key, registry.icrc72_get_subscriptions({ prev = null; take = ?1000; filter })));
        };
        if (not own and not divided.containsKey(namespace) and not publications.containsKey(namespace)) {
          let filter = ?{ statistics = #None; slice = [#ByNamespace namespace] };
          publications.add(namespace, registry.icrc72_get_publications({ prev = null; take = ?1; filter }));
        };
      };
    };
    var complete = true;
    for ((key, answer) in subscriptions.values()) {
      try {
        let open = (await answer).filter(func info = Icrc72.find(?info.config, "icrc72:subscription:stopped") != ?#Bool true);
        wantedBy.add(key, open.map(func info = wanted(info.subscriptionId, info.config)));
      } catch _ { complete := false };
    };
    for ((namespace, answer) in publications.entries()) {
      try {
        let infos = await answer;
        let found = if (infos.size() > 0) Icrc72.find(?infos[0].config, "icrc72:publication:partitions") else null;
        divided.add(namespace, switch found { case (?#Nat number) Nat.max(1, number); case _ 1 });
      } catch _ { complete := false };
    };
    complete;
  };

  /// Apply an alert as a whole, removals first, when everything about what it adds is known.
  func apply(alert : Icrc72.Notification) : async () {
    func told(key : Text) : [[Icrc72.Value]] = Icrc72.entries([alert], key);
    if (not (await pull(alert))) return;
    for ((namespace, number) in divided.entries()) partitions.add(namespace, number);
    for (role in ["subscriber", "publisher", "relayer", "relay"].values()) {
      for (entry in told("icrc72:broadcaster:" # role # ":remove").values()) place(role, entry, null);
    };
    for (kind in ["replay", "replay_relay"].values()) {
      for (entry in told("icrc77:broadcaster:" # kind # ":remove").values()) {
        let #Nat number = entry[0] else return;
        endReplay(number, kind == "replay");
      };
      for (entry in told("icrc77:broadcaster:" # kind # ":add").values()) beginReplay(entry, kind == "replay");
    };
    for (role in ["subscriber", "publisher", "relayer", "relay"].values()) {
      for (entry in told("icrc72:broadcaster:" # role # ":add").values()) place(role, entry, ?());
    };
    applied := Nat.max(applied, alert.eventId);
  };

  func wanted(id : Nat, config : Icrc72.Map) : Wanted {
    let filter = switch (Icrc72.find(?config, "icrc72:subscription:filter")) { case (?#Text text) ?text; case _ null };
    let skip = switch (Icrc72.find(?config, "icrc72:subscription:skip")) { case (?value) value; case null #Option null };
    { id; filter; skip };
  };

  /// Add or remove a subscriber, publisher, relayer or relay.
  func place(role : Text, entry : [Icrc72.Value], add : ?()) {
    let (#Text namespace, #Blob blob) = (entry[0], entry[1]) else return;
    let who = blob.fromBlob();
    let key = pair(namespace, who);
    switch (role, add) {
      case ("publisher", ?_) publishers.add(key, ());
      case ("publisher", null) { publishers.remove(key); endChains(namespace, who) };
      case ("relayer", ?_) relayers.add(key, ());
      case ("relayer", null) { relayers.remove(key); endChains(namespace, who) };
      case ("subscriber", ?_) {
        let those = switch (subscribers.get(namespace)) { case (?there) there; case null Map.empty<Principal, [Wanted]>() };
        those.add(who, switch (wantedBy.get(key)) { case (?list) list; case null [] });
        subscribers.add(namespace, those);
      };
      case ("subscriber", null) {
        switch (subscribers.get(namespace)) { case (?those) those.remove(who); case null {} };
        alerted.remove(namespace);
        dropWaiting(namespace, who);
      };
      case ("relay", ?_) {
        let those = switch (relays.get(namespace)) { case (?there) there; case null Map.empty<Text, Map.Map<Text, ()>>() };
        let whose = switch (those.get(who.toText())) { case (?there) there; case null Map.empty<Text, ()>() };
        whose.add(subscriberOf(entry), ());
        those.add(who.toText(), whose);
        relays.add(namespace, those);
      };
      case _ {
        let ?those = relays.get(namespace) else return;
        let ?whose = those.get(who.toText()) else return;
        whose.remove(subscriberOf(entry));
        if (whose.size() > 0) return; // others there still want it
        those.remove(who.toText());
        for ((each, line) in lanes.entries().toArray().values()) {
          if (line.target == who and each.startsWith(#text(namespace # " "))) lanes.remove(each);
        };
      };
    };
  };

  /// For whom a relay is; nobody in particular where it is for all.
  func subscriberOf(entry : [Icrc72.Value]) : Text = if (entry.size() > 2) debug_show (entry[2]) else "";

  func endChains(namespace : Text, caller : Principal) {
    for (key in chains.keys().toArray().values()) {
      if (key.startsWith(#text(namespace # " ")) and key.endsWith(#text(" " # caller.toText()))) chains.remove(key);
    };
  };

  /// What is queued of a namespace is no longer due; replays go on.
  func dropWaiting(namespace : Text, who : Principal) {
    let mine = box(who);
    func stays(note : Note) : Bool =
      note.event.namespace != namespace or Icrc72.find(note.event.headers, "icrc77:replay:id") != null;
    for (note in mine.out.concat(mine.waiting.toArray()).values()) { if (not stays(note)) owners.remove(note.id) };
    mine.out := mine.out.filter(stays);
    let left = mine.waiting.toArray().filter(stays);
    mine.waiting.clear();
    for (note in left.values()) mine.waiting.pushBack(note);
    for (key in mine.prev.keys().toArray().values()) { if (key.startsWith(#text(namespace # " "))) mine.prev.remove(key) };
  };

  // Replays

  func beginReplay(entry : [Icrc72.Value], here : Bool) {
    let (#Nat id, #Text namespace, #Blob first, #Blob second) = (entry[0], entry[1], entry[2], entry[3]) else return;
    let filter = switch (entry[4]) { case (#Text text) ?text; case (#Option(?#Text text)) ?text; case _ null };
    let skip = entry[5];
    let wanted : Wanted = { id; filter; skip };
    if (not here) {
      let (to, publisher) = (first.fromBlob(), ?second.fromBlob());
      if (not forwarded.containsKey(id)) forwarded.add(id, { namespace; from = self; to; wanted; publisher; var next = 0 });
    } else if (not delivered.containsKey(id)) {
      let publisher = if (entry.size() > 6) switch (entry[6]) { case (#Blob who) ?who.fromBlob(); case _ null } else null;
      let (from, to) = (first.fromBlob(), second.fromBlob());
      delivered.add(id, { namespace; from; to; wanted; publisher; var next = 0 });
      tell(to, "icrc77:subscriber:replay:add", #Array([#Nat id, #Blob(self.toBlob())]));
    };
  };

  func endReplay(id : Nat, here : Bool) {
    if (not here) { forwarded.remove(id); lanes.remove("replay " # id.toText()); return };
    let ?way = delivered.take(id) else return;
    tell(way.to, "icrc77:subscriber:replay:remove", #Array([#Nat id]));
  };

  /// A system event of this broadcaster's own, with ids that go up.
  func tell(who : Principal, key : Text, entry : Icrc72.Value) {
    own += 1;
    let namespace = "icrc72:subscriber:sys:" # who.toText();
    let data = #Map([(key, #Array([entry]))]);
    let (eventId, timestamp) = (own, now());
    let event : Event = { eventId; prevEventId = null; timestamp; namespace; data; source = self; headers = null };
    ignore queue(who, event, null, null);
  };

  public query func icrc72_get_broadcaster_stats() : async Icrc72.Map {
    var queued = 0;
    for (mine in boxes.values()) queued += mine.out.size() + mine.waiting.size();
    let counts : Icrc72.Map = [("events", events), ("notifications", notes), ("confirmations", confirmations), ("queued", queued)]
      .map(func(name, number) = ("icrc72:broadcaster:stats:" # name, #Nat number));
    counts.concat(forwarded.keys().toArray().map(func id {
      let waits = switch (lanes.get("replay " # id.toText())) { case (?line) line.waiting.size(); case null 0 };
      ("icrc77:replay:" # id.toText() # ":queued", #Nat waits);
    }));
  };

  func tick() : async () {
    if (not registered and not registering) {
      registering := true;
      try {
        let answers = await registry.icrc72_register_subscription([Icrc72.item(alerts, [])]);
        registered := answers.any(func each = switch each { case (?#Ok _) true; case _ false });
      } catch _ {};
      registering := false;
    };
    for ((who, mine) in boxes.entries()) {
      let batch = due(mine);
      if (batch.size() > 0) Icrc72.receiver(who).icrc72_handle_notification(batch);
    };
    for ((key, line) in lanes.entries().toArray().values()) {
      if (not busy.containsKey(key) and not line.waiting.isEmpty() and Time.now() >= line.next) ignore pump(key, line);
    };
  };
  /// Every round. A timer whose call to the canister itself meets a stop is not set again when the canister starts.
  system func heartbeat() : async () { await tick() };
};
