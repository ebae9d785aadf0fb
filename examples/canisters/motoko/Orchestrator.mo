/// Registers publications and subscriptions, and tells broadcasters, publishers and subscribers what concerns them.
///
/// One broadcaster serves each canister as its entry and exit. What everybody should know is planned as a whole; what
/// they know differs from it by facts, which are told in the order of their phases, each phase when the broadcasters
/// have confirmed the one before. A replay is of the namespace's first publisher. Lists, no list canisters; no payment.
import Array "mo:core/Array";
import Char "mo:core/Char";
import Int "mo:core/Int";
import Iter "mo:core/Iter";
import Map "mo:core/Map";
import Nat "mo:core/Nat";
import Principal "mo:core/Principal";
import Text "mo:core/Text";
import Time "mo:core/Time";
import Filter "Filter";
import Icrc72 "Icrc72";

persistent actor class Orchestrator(first : Principal) = me {
  type Value = Icrc72.Value;
  /// The entries of an alert that add and remove it. It is told again when they or its mark change.
  type Fact = { phase : Nat; key : Text; add : Value; gone : Value; mark : Text };
  type Facts = Map.Map<Text, Fact>;
  type Alert = { number : Nat; event : Icrc72.Event; adds : [(Text, Fact)]; removes : [Text] };
  /// Who is told: a broadcaster, publisher or subscriber.
  type Party = {
    id : Principal; role : Text; number : Nat; told : Facts;
    var alert : ?Alert; var age : Nat; var last : Nat; var dead : Bool; var busy : Bool;
  };
  type Config = Map.Map<Text, Value>;
  type Publication = {
    id : Nat; namespace : Text; creator : Principal; asked : Icrc72.Map; var config : Config;
    publishers : Map.Map<Principal, ()>;
  };
  type Subscription = {
    id : Nat; namespace : Text; subscriber : Principal; asked : Icrc72.Map; var config : Config; var version : Nat;
  };
  type Replay = {
    id : Nat; namespace : Text; publisher : Principal; subscriber : Principal; range : (Nat, ?Nat); config : Icrc72.Map;
    filter : Value; skip : Value; entry : Principal; exit : Principal;
    var state : Icrc72.State; var done : ?Nat; var silence : Nat;
  };
  type Which = { #namespace : Text; #id : Nat; #publicationId : Nat };
  type What = { #namespace : Text; #id : Nat; #subscriptionId : Nat };
  type Change = (Text, Value);
  type PublicationUpdate = { publication : Which; config : Change; memo : ?Blob };
  type SubscriptionUpdate = { subscription : What; config : Change; subscriber : ?Principal; memo : ?Blob };
  type PublicationDelete = { publication : Which; memo : ?Blob };
  type SubscriptionDelete = { subscription : What; subscriber : ?Principal; memo : ?Blob };
  type Report = { replayId : Nat; status : Icrc72.State };
  type Stats = actor { icrc72_get_broadcaster_stats : query () -> async Icrc72.Map };

  let listed = Map.empty<Principal, ()>();
  let parties = Map.empty<Text, Party>(); // by system namespace
  let homes = Map.empty<Principal, Principal>(); // whose broadcaster is which
  let publications = Map.empty<Text, Publication>();
  let subscriptions = Map.empty<Nat, Subscription>();
  let replays = Map.empty<Nat, Replay>();
  var ids = 0;
  var notes = 0;
  var changed = true;
  var seconds = 0;
  listed.add(first, ());
  transient let self = Principal.fromActor(me);
  transient let lists = ["publishers:allowed", "publishers:disallowed", "subscribers:allowed", "subscribers:disallowed"];
  transient let publication = "icrc72:publication:";
  transient let subscription = "icrc72:subscription:";

  transient let another : Icrc72.Failure = #ImproperConfig "it is registered with another configuration";

  func nextId() : Nat { ids += 1; ids };
  func sys(role : Text, who : Principal) : Text = "icrc72:" # role # ":sys:" # who.toText();
  func isSystem(name : Text) : Bool = name.startsWith(#text "icrc") and name.contains(#char ':');
  func living() : [Party] = parties.values().filter(func each = each.role == "broadcaster" and not each.dead).toArray();
  func lives(who : Principal) : Bool = living().any(func each = each.id == who);
  public shared ({ caller }) func add_broadcaster(who : Principal) : async () {
    if (caller.isController()) listed.add(who, ());
  };

  // Namespaces

  func segments(name : Text) : [Text] = name.split(#char '.').toArray();
  func isNamespace(name : Text, wild : Bool) : Bool =
    name.size() <= 256 and segments(name).size() <= 16 and segments(name).all(func part =
      (wild and (part == "*" or part == "**")) or (part.size() > 0 and part.size() <= 64 and part.chars().all(isLetter)));
  func isLetter(c : Char) : Bool = (c >= 'a' and c <= 'z') or (c >= 'A' and c <= 'Z') or c.isDigit() or c == '_' or c == '-';
  func matches(pattern : Text, name : Text) : Bool = pattern == name or meets(segments(pattern), segments(name), 0, 0);
  func meets(pattern : [Text], name : [Text], at : Nat, to : Nat) : Bool {
    if (at == pattern.size()) return to == name.size();
    if (pattern[at] == "**") return meets(pattern, name, at + 1, to) or (to < name.size() and meets(pattern, name, at, to + 1));
    to < name.size() and (pattern[at] == "*" or pattern[at] == name[to]) and meets(pattern, name, at + 1, to + 1);
  };

  // Configurations

  func listOf(config : Config, key : Text) : [Principal] {
    let ?value = config.get(key) else return [];
    Icrc72.parts(value).filterMap(func each {
      switch each { case (#Blob raw) ?raw.fromBlob(); case (#Principal who) ?who; case _ null };
    });
  };
  func blobs(those : [Principal]) : Value = #Array(those.map(func who = #Blob(who.toBlob())));
  func has(those : [Principal], who : Principal) : Bool = those.any(func each = each == who);

  /// Change one key. What is wrong with it, if anything.
  func change(config : Config, prefix : Text, (key, value) : Change) : ?Text {
    let names = lists.map(func name = prefix # name # ":list");
    for (base in names.concat([prefix # "controllers"]).values()) {
      let kept = if (base == prefix # "controllers") base # ":add" else base;
      let had = listOf(config, kept);
      let given = listOf(Map.singleton(key, value), key);
      if (key == base) { config.add(kept, blobs(given)); return null };
      if (key == base # ":add") { config.add(kept, blobs(had.concat(given))); return null };
      if (key == base # ":remove") {
        let left = had.filter(func who = not has(given, who));
        if (left.size() == 0 and kept != base) return ?"the last controller cannot be removed";
        config.add(kept, blobs(left));
        return null;
      };
    };
    let known = prefix == publication;
    switch (key, value) {
      case ("icrc72:publication:mode", #Text "fifo") if (not known) return ?key;
      case ("icrc77:replay" or "icrc77:capable", #Bool _) if (not known) return ?key;
      case ("icrc77:max_range", #Nat _) if (not known) return ?key;
      case ("icrc72:subscription:stopped", #Bool _) if known return ?key;
      case ("icrc72:subscription:skip" or "icrc72:subscription:filter", #Option null) { config.remove(key); return null };
      case ("icrc72:subscription:skip", #Array _) if (known or Icrc72.parts(value).size() > 2) return ?key;
      case ("icrc72:subscription:filter", #Text text) if (known or not Filter.isFilter(text)) return ?("no filter: " # text);
      case _ return ?(key # " has no such key or value");
    };
    config.add(if (key == "icrc77:capable") "icrc77:replay" else key, value);
    null;
  };

  func configured(prefix : Text, who : Principal, asked : Icrc72.Map) : { #Ok : Config; #Err : Icrc72.Failure } {
    let config = Map.singleton<Text, Value>(prefix # "controllers:add", blobs([who]));
    for (each in asked.values()) {
      switch (change(config, prefix, each)) { case (?why) return #Err(#ImproperConfig why); case null {} };
    };
    #Ok config;
  };

  func may(it : Publication, side : Text, who : Principal) : Bool {
    func on(how : Text) : Bool = has(listOf(it.config, publication # side # ":" # how # ":list"), who);
    if (on("disallowed")) return false;
    let open = side == "subscribers" and it.config.get(publication # "subscribers:allowed:list") == null;
    open or on("allowed") or (side == "publishers" and it.creator == who);
  };

  // Registering

  public shared ({ caller }) func icrc72_register_publication(items : [Icrc72.Registration]) : async Icrc72.Answers<Nat> =
    async Icrc72.answers<Icrc72.Registration, Nat>(items, func item = publishes(caller, item));

  func publishes(who : Principal, item : Icrc72.Registration) : Icrc72.Answer<Nat> {
    if (isSystem(item.namespace)) return #Err(#Unauthorized);
    if (not isNamespace(item.namespace, false)) return #Err(#ImproperConfig(item.namespace # " is no namespace"));
    let it = switch (publications.get(item.namespace)) {
      case (?it) {
        let allowed = it.publishers.containsKey(who) or may(it, "publishers", who);
        if (not allowed) return #Err(#UnauthorizedPublisher({ namespace = it.namespace }));
        if (item.config.size() > 0 and item.config != it.asked) return #Err(another);
        it;
      };
      case null switch (configured(publication, who, item.config)) {
        case (#Err why) return #Err why;
        case (#Ok config) {
          let (id, namespace, asked, publishers) = (nextId(), item.namespace, item.config, Map.empty<Principal, ()>());
          { id; namespace; creator = who; asked; var config; publishers } : Publication;
        };
      };
    };
    publications.add(item.namespace, it);
    it.publishers.add(who, ());
    changed := true;
    #Ok(it.id);
  };

  public shared ({ caller }) func icrc72_register_subscription(items : [Icrc72.Registration]) : async Icrc72.Answers<Nat> =
    async Icrc72.answers<Icrc72.Registration, Nat>(items, func item = subscribes(caller, item));

  func subscribes(who : Principal, item : Icrc72.Registration) : Icrc72.Answer<Nat> {
    if (isSystem(item.namespace)) return joins(who, item.namespace);
    if (not isNamespace(item.namespace, true)) return #Err(#ImproperConfig(item.namespace # " is no pattern"));
    switch (subscriptions.values().find(func each = each.subscriber == who and each.namespace == item.namespace)) {
      case (?it) {
        let same = item.config.size() == 0 or item.config == it.asked;
        return if same #Ok(it.id) else #Err(another);
      };
      case null {};
    };
    switch (publications.get(item.namespace)) {
      case (?it) if (not may(it, "subscribers", who)) return #Err(#UnauthorizedSubscriber({ namespace = it.namespace }));
      case null {};
    };
    let config = switch (configured(subscription, who, item.config)) {
      case (#Ok made) made;
      case (#Err why) return #Err why;
    };
    let id = nextId();
    subscriptions.add(id, { id; namespace = item.namespace; subscriber = who; asked = item.config; var config; var version = 0 });
    changed := true;
    #Ok id;
  };

  /// Somebody wants to hear what concerns it. Who says so again has lost what it was told.
  func joins(who : Principal, name : Text) : Icrc72.Answer<Nat> {
    let roles = ["broadcaster", "publisher", "subscriber"];
    let ?role = roles.find(func each = name == sys(each, who)) else return #Err(#Unauthorized);
    if (role == "broadcaster" and not listed.containsKey(who)) return #Err(#Unauthorized);
    changed := true;
    switch (parties.get(name)) {
      case (?party) {
        if (role == "broadcaster") { party.told.clear(); party.alert := null; party.dead := false } else again(party);
        #Ok(party.number);
      };
      case null {
        let number = nextId();
        let made : Party = {
          id = who; role; number; told = Map.empty();
          var alert = null; var age = 0; var last = 0; var dead = false; var busy = false;
        };
        parties.add(name, made);
        #Ok number;
      };
    };
  };
  func again(party : Party) {
    for ((name, fact) in party.told.entries().toArray().values()) party.told.add(name, { fact with mark = "again" });
  };

  func whichOne(which : Which) : ?Publication = switch which {
    case (#namespace name) publications.get(name);
    case (#id id or #publicationId id) publications.values().find(func each = each.id == id);
  };
  func whatOne(what : What, whose : Principal) : ?Subscription = switch what {
    case (#namespace name) subscriptions.values().find(func each = each.subscriber == whose and each.namespace == name);
    case (#id id or #subscriptionId id) subscriptions.get(id);
  };
  func controls(config : Config, prefix : Text, who : Principal) : Bool = has(listOf(config, prefix # "controllers:add"), who);

  public shared ({ caller }) func icrc72_update_publication(items : [PublicationUpdate]) : async Icrc72.Answers<Bool> =
    async Icrc72.answers<PublicationUpdate, Bool>(items, func item {
      let ?it = whichOne(item.publication) else return #Err(Icrc72.generic(1, "not found"));
      if (not controls(it.config, publication, caller)) return #Err(#Unauthorized);
      let config = it.config.clone();
      switch (change(config, publication, item.config)) { case (?why) return #Err(#ImproperConfig why); case null {} };
      it.config := config;
      changed := true;
      #Ok true;
    });

  public shared ({ caller }) func icrc72_update_subscription(items : [SubscriptionUpdate]) : async Icrc72.Answers<Bool> =
    async Icrc72.answers<SubscriptionUpdate, Bool>(items, func item {
      let ?it = whatOne(item.subscription, owner(item.subscriber, caller)) else return #Err(Icrc72.generic(1, "not found"));
      if (caller != it.subscriber and not controls(it.config, subscription, caller)) return #Err(#Unauthorized);
      let config = it.config.clone();
      switch (change(config, subscription, item.config)) { case (?why) return #Err(#ImproperConfig why); case null {} };
      it.config := config;
      it.version += 1;
      changed := true;
      #Ok true;
    });

  public shared ({ caller }) func icrc72_delete_publication(items : [PublicationDelete]) : async Icrc72.Answers<Bool> =
    async Icrc72.answers<PublicationDelete, Bool>(items, func item {
      let ?it = whichOne(item.publication) else return #Err(Icrc72.generic(1, "not found"));
      if (not controls(it.config, publication, caller)) return #Err(#Unauthorized);
      for (each in replays.values()) if (each.namespace == it.namespace and isLive(each)) each.state := #canceled 0;
      publications.remove(it.namespace);
      changed := true;
      #Ok true;
    });

  public shared ({ caller }) func icrc72_delete_subscription(items : [SubscriptionDelete]) : async Icrc72.Answers<Bool> =
    async Icrc72.answers<SubscriptionDelete, Bool>(items, func item {
      let ?it = whatOne(item.subscription, owner(item.subscriber, caller)) else return #Err(Icrc72.generic(1, "not found"));
      if (caller != it.subscriber and not controls(it.config, subscription, caller)) return #Err(#Unauthorized);
      subscriptions.remove(it.id);
      changed := true;
      #Ok true;
    });
  func owner(named : ?Principal, caller : Principal) : Principal = switch named { case (?who) who; case null caller };

  // Plans

  /// The broadcaster of a canister: a living one, chosen for good as the one that serves the fewest.
  func home(who : Principal) : ?Principal {
    switch (homes.get(who)) { case (?there) if (lives(there)) return ?there; case null {} };
    var best : ?(Nat, Principal) = null;
    for (each in living().values()) {
      let load = homes.values().filter(func there = there == each.id).size();
      switch best { case (?(least, _)) if (load < least) best := ?(load, each.id); case null best := ?(load, each.id) };
    };
    let ?(_, chosen) = best else return null;
    homes.add(who, chosen);
    for (role in ["publisher", "subscriber"].values()) {
      switch (parties.get(sys(role, who))) { case (?party) { party.alert := null; again(party) }; case null {} };
    };
    ?chosen;
  };

  func open(it : Publication, each : Subscription) : Bool =
    matches(each.namespace, it.namespace) and may(it, "subscribers", each.subscriber)
      and each.config.get(subscription # "stopped") != ?#Bool true;
  func isLive(replay : Replay) : Bool = switch (replay.state) { case (#pending or #running) true; case _ false };

  /// What everybody should know, by system namespace.
  func plan() : Map.Map<Text, Facts> {
    let wanted = Map.empty<Text, Facts>();
    func want(role : Text, who : Principal, phase : Nat, key : Text, add : [Value], mark : Text) {
      let place = sys(role, who);
      let facts = switch (wanted.get(place)) { case (?there) there; case null Map.empty<Text, Fact>() };
      let (entry, replay) = ("icrc72:publisher:broadcaster", "icrc77:broadcaster:replay");
      let numbered = [entry, "icrc77:publisher:replay", replay # "_relay", replay # "_relayer"].any(func each = each == key);
      let gone : Value = if numbered add[0] else if (key == replay) #Array([add[0]]) else #Array add;
      let name = key # " " # debug_show (if numbered add[0] else #Array add);
      facts.add(name, { phase; key; add = #Array add; gone; mark });
      wanted.add(place, facts);
    };
    func blob(who : Principal) : Value = #Blob(who.toBlob());
    let broadcaster = "icrc72:broadcaster:";
    for ((name, party) in parties.entries()) {
      if (party.role != "broadcaster") switch (home(party.id)) {
        case (?exit) want("broadcaster", exit, 3, broadcaster # "subscriber", [#Text name, blob(party.id)], "");
        case null {};
      };
    };
    for (it in publications.values()) {
      let open_ = subscriptions.values().filter(func each = open(it, each)).toArray();
      let name = #Text(it.namespace);
      for (publisher in it.publishers.keys()) if (may(it, "publishers", publisher)) switch (home(publisher)) {
        case (?entry) {
          want("broadcaster", entry, 4, broadcaster # "publisher", [name, blob(publisher)], "");
          want("publisher", publisher, 5, "icrc72:publisher:broadcaster", [#Nat(it.id), blob(entry)], "");
          for (each in open_.values()) switch (home(each.subscriber)) {
            case (?exit) if (exit != entry) {
              want("broadcaster", exit, 1, broadcaster # "relayer", [name, blob(entry)], "");
              want("broadcaster", entry, 2, broadcaster # "relay", [name, blob(exit)], "");
            };
            case null {};
          };
        };
        case null {};
      };
      for (each in open_.values()) switch (home(each.subscriber)) {
        case (?exit) {
          let mine = open_.filter(func other = other.subscriber == each.subscriber);
          let mark = debug_show (mine.map(func other = (other.id, other.version)));
          want("broadcaster", exit, 3, broadcaster # "subscriber", [name, blob(each.subscriber)], mark);
          want("subscriber", each.subscriber, 5, "icrc72:subscriber:broadcaster", [#Nat(each.id), blob(exit)], "");
        };
        case null {};
      };
    };
    for (it in replays.values()) if (isLive(it)) {
      let (id, name) = (#Nat(it.id), #Text(it.namespace));
      let end : Value = switch (it.range.1) { case (?number) #Option(?#Nat number); case null #Option null };
      let here = [id, name, blob(it.entry), blob(it.subscriber), it.filter, it.skip, blob(it.publisher)];
      want("broadcaster", it.exit, 3, "icrc77:broadcaster:replay", here, "");
      if (it.entry != it.exit) {
        want("broadcaster", it.exit, 1, "icrc77:broadcaster:replay_relayer", [id, name, blob(it.entry)], "");
        let there = [id, name, blob(it.exit), blob(it.publisher), it.filter, it.skip];
        want("broadcaster", it.entry, 4, "icrc77:broadcaster:replay_relay", there, "");
      };
      want("publisher", it.publisher, 5, "icrc77:publisher:replay", [id, name, #Nat(it.range.0), end, blob(it.entry)], "");
    };
    wanted;
  };

  // Telling

  /// Tell what comes first of all that differs: additions by their phase, then removals the other way.
  func tell() {
    let wanted = plan();
    func phaseOf(fact : Fact, stays : Bool) : Nat = if stays fact.phase else 11 - fact.phase : Nat;
    func differences(name : Text, party : Party) : [(Nat, Text, Fact, Bool)] {
      let should = switch (wanted.get(name)) { case (?facts) facts; case null Map.empty<Text, Fact>() };
      let more = should.entries().filter(func(key, fact) = party.told.get(key) != ?fact)
        .map(func(key, fact) = (phaseOf(fact, true), key, fact, true));
      let less = party.told.entries().filter(func(key, _) = not should.containsKey(key))
        .map(func(key, fact) = (phaseOf(fact, false), key, fact, false));
      more.concat(less).toArray();
    };
    let all = parties.entries().filter(func(_, party) = not party.dead)
      .map(func(name, party) = (name, party, differences(name, party))).toArray();
    var phase = 11;
    for ((_, _, those) in all.values()) for (each in those.values()) phase := Nat.min(phase, each.0);
    if (phase == 11) changed := false;
    for ((name, party, those) in all.values()) {
      let now = those.filter(func each = each.0 == phase);
      let free = party.role == "broadcaster" or party.alert == null; // a member has one alert at a time
      if (free and now.size() > 0) alert(name, party, now.sliceToArray(0, Nat.min(now.size(), 100)));
    };
  };

  func alert(name : Text, party : Party, those : [(Nat, Text, Fact, Bool)]) {
    let entries = Map.empty<Text, [Value]>();
    for ((_, _, fact, adds) in those.values()) {
      let key = fact.key # (if adds ":add" else ":remove");
      entries.add(key, (switch (entries.get(key)) { case (?had) had; case null [] }).concat([if adds fact.add else fact.gone]));
    };
    party.last += 1;
    party.age := 0;
    notes += 1;
    let data = #Map(entries.entries().map(func(key, items) = (key, #Array items)).toArray());
    let (eventId, timestamp) = (party.last, Int.abs(Time.now()));
    let event : Icrc72.Event = {
      eventId; prevEventId = null; timestamp; namespace = name; data; source = self; headers = null;
    };
    let adds = those.filter(func each = each.3).map(func each = (each.1, each.2));
    party.alert := ?{ number = notes; event; adds; removes = those.filter(func each = not each.3).map(func each = each.1) };
  };

  func done(party : Party) {
    let ?it = party.alert else return;
    for (each in it.removes.values()) party.told.remove(each);
    for ((name, fact) in it.adds.values()) party.told.add(name, fact);
    party.alert := null;
    party.age := 0;
    party.dead := false;
    changed := true;
  };

  /// A broadcaster confirms nothing any more. Should it come back, it is to forget all that it may know.
  func dies(name : Text, party : Party) {
    switch (party.alert) { case (?it) for ((key, fact) in it.adds.values()) party.told.add(key, fact); case null {} };
    party.dead := true;
    alert(name, party, party.told.entries().map(func(key, fact) = (0, key, fact, false)).toArray());
    for (each in replays.values()) {
      if (isLive(each) and (each.entry == party.id or each.exit == party.id)) each.state := #errored "broadcaster died";
    };
    changed := true;
  };

  public shared ({ caller }) func icrc72_confirm_notifications(numbers : [Nat]) : async Icrc72.Confirmed {
    let found = Icrc72.answers<Nat, ()>(numbers, func number {
      let ?party = parties.get(sys("broadcaster", caller)) else return #Err(#NotFound);
      let ?it = party.alert else return #Err(#NotFound);
      if (it.number != number) return #Err(#NotFound);
      done(party);
      #Ok;
    });
    if (found.all(func each = each == ?#Ok)) #allAccepted else #itemized(found);
  };

  /// Publish the alert of a publisher or subscriber at its broadcaster. It counts as known when it was handed over.
  func handOver(party : Party, it : Alert, there : Principal) : async () {
    party.busy := true;
    try {
      switch ((await Icrc72.broadcaster(there).icrc72_publish([it.event]))[0]) {
        case (?#Ok _) switch (party.alert) { case (?now) if (now.number == it.number) done(party); case null {} };
        case _ {};
      };
    } catch _ {};
    party.busy := false;
  };

  /// Whether a broadcaster is to know something before the next phase; an empty alert only asks whether it lives. Members
  /// hold nobody up: a broadcaster that lost its state is told again whom it serves before they can be told anything.
  func waits(party : Party) : Bool = switch (party.alert) {
    case (?it) party.role == "broadcaster" and not party.dead and it.adds.size() + it.removes.size() > 0;
    case null false;
  };

  func tick() : async () {
    seconds += 1;
    if (changed and not parties.values().any(waits)) tell();
    for ((name, party) in parties.entries().toArray().values()) {
      party.age += 1;
      switch (party.role, party.alert) {
        case ("broadcaster", ?it) {
          if (party.age > 50 and not party.dead) dies(name, party);
          let every = if (party.dead) 16 else 4;
          let note = { it.event with notificationId = it.number; filter = null };
          if (party.age % every == 1) Icrc72.receiver(party.id).icrc72_handle_notification([note]);
        };
        case ("broadcaster", null) if (party.age >= 20) alert(name, party, []);
        case (_, ?it) switch (home(party.id)) {
          case (?there) if (not party.busy) ignore handOver(party, it, there);
          case null {};
        };
        case _ {};
      };
    };
    for (it in replays.values().filter(isLive).toArray().values()) {
      it.silence += 1;
      if (it.silence > 400) { it.state := #errored "publisher silent"; changed := true };
      if (it.done != null and seconds % 5 == 0) ignore finish(it);
    };
  };

  // Replays

  /// A replay is over when nothing of it waits at its entry.
  func finish(it : Replay) : async () {
    let ?count = it.done else return;
    let entry : Stats = actor (it.entry.toText());
    let stats = try { await entry.icrc72_get_broadcaster_stats() } catch _ return;
    switch (Icrc72.find(?stats, "icrc77:replay:" # it.id.toText() # ":queued")) {
      case (?#Nat waits) if (waits > 0) return;
      case _ {};
    };
    if (isLive(it)) { it.state := #completed count; changed := true };
  };

  public shared ({ caller }) func icrc77_register_replay(items : [Icrc72.Replay]) : async Icrc72.Answers<Nat> =
    async Icrc72.answers<Icrc72.Replay, Nat>(items, func item = asks(caller, item));

  func asks(who : Principal, item : Icrc72.Replay) : Icrc72.Answer<Nat> {
    let ?it = publications.get(item.namespace) else return #Err(#PublicationNotFound);
    if (not may(it, "subscribers", who)) return #Err(#UnauthorizedSubscriber({ namespace = it.namespace }));
    func follows(each : Subscription) : Bool = each.subscriber == who and matches(each.namespace, it.namespace);
    let ?mine = subscriptions.values().find(follows) else return #Err(#SubscriptionNotFound);
    let (start, end) = item.range;
    let most = switch (it.config.get("icrc77:max_range")) { case (?#Nat number) number; case _ 10_000 };
    switch end {
      case (?number) {
        if (number <= start) return #Err(#ImproperConfig "the range is empty");
        if (number - start : Nat > most) return #Err(#RangeTooLarge("at most " # most.toText() # " events"));
      };
      case null {};
    };
    if (it.config.get("icrc77:replay") != ?#Bool true) return #Err(Icrc72.generic(8, "cannot be replayed"));
    func chosen(name : Text) : Value {
      let value = switch (Icrc72.find(?item.config, "icrc77:replay:" # name), Icrc72.find(?item.config, name)) {
        case (?found, _) found;
        case (null, ?found) found;
        case _ switch (mine.config.get(subscription # name)) { case (?found) found; case null #Option null };
      };
      switch value { case (#Option(?inside)) inside; case _ value };
    };
    let publisher = it.creator;
    let (?entry, ?exit) = (home(publisher), home(who)) else return #Err(Icrc72.generic(2, "subnet not available"));
    let id = nextId();
    let (namespace, range, config, subscriber) = (it.namespace, item.range, item.config, who);
    let (filter, skip) = (chosen("filter"), chosen("skip"));
    let made : Replay = {
      id; namespace; publisher; subscriber; range; config; filter; skip; entry; exit;
      var state = #pending; var done = null; var silence = 0;
    };
    replays.add(id, made);
    if (replays.size() > 1000) for (old in replays.values().toArray().values()) { // the oldest that is over goes
      if (not isLive(old)) { replays.remove(old.id); return #Ok id };
    };
    changed := true;
    #Ok id;
  };

  public shared ({ caller }) func icrc77_replay_status(items : [Report]) : async Icrc72.Answers<Nat> =
    async Icrc72.answers<Report, Nat>(items, func item {
      let ?it = replays.get(item.replayId) else return #Err(#NotFound);
      if (it.publisher != caller) return #Err(#Unauthorized);
      it.silence := 0;
      switch (it.state, item.status) {
        case (#pending or #running, #running) it.state := #running;
        case (#running, #completed count) it.done := ?count;
        case (#pending or #running, #errored why) { it.state := #errored why; changed := true };
        case (had, said) if (had != said) return #Err(Icrc72.generic(9, "wrong state"));
      };
      #Ok(it.id);
    });

  public shared ({ caller }) func icrc77_cancel_replay(numbers : [Nat]) : async Icrc72.Answers<Nat> =
    async Icrc72.answers<Nat, Nat>(numbers, func number {
      let ?it = replays.get(number) else return #Err(#NotFound);
      let control = switch (publications.get(it.namespace)) {
        case (?of) controls(of.config, publication, caller);
        case null false;
      };
      if (it.subscriber != caller and not control) return #Err(#Unauthorized);
      if (not isLive(it)) return #Err(#CannotCancel "it is over");
      it.state := #canceled 0;
      changed := true;
      #Ok number;
    });

  // Queries

  type Valid = { #list : [Principal]; #icrc75 : { principal : Principal; namespace : Text } };
  public shared func icrc72_get_valid_broadcasters() : async Valid = async #list(living().map(func each = each.id));

  type Order = { #less; #equal; #greater };
  func page<K, V>(all : [V], asked : Icrc72.Page<K>, order : (V, V) -> Order, after : (V, K) -> Bool) : [V] {
    let rest = all.sort(order).filter(func each = switch (asked.prev) { case (?prev) after(each, prev); case null true });
    let most = switch (asked.take) { case (?take) Nat.min(take, 1000); case null 100 };
    rest.sliceToArray(0, Nat.min(rest.size(), most));
  };
  func slices<K>(asked : Icrc72.Page<K>) : [Icrc72.Slice] = switch (asked.filter) { case (?filter) filter.slice; case null [] };
  /// Whether a publication and one who publishes or subscribes there are in a slice.
  func fits(it : ?Publication, publisher : ?Principal, each : ?Subscription, slice : Icrc72.Slice) : Bool = switch slice {
    case (#ByNamespace name) switch (it, each) {
      case (?found, _) matches(name, found.namespace);
      case (null, ?found) found.namespace == name;
      case _ false;
    };
    case (#ByPublisher who) publisher == ?who;
    case (#BySubscriber who) switch each { case (?found) found.subscriber == who; case null false };
    case (#ByBroadcaster who) served(publisher) == ?who or served(subscriberOf(each)) == ?who;
  };
  type Row = { it : ?Publication; publisher : ?Principal; each : ?Subscription };
  /// Publications with their publishers and subscriptions, and subscriptions to what is not there.
  func rows(asked : [Icrc72.Slice]) : [Row] {
    let found = publications.values().toArray().flatMap(func it {
      let open_ = subscriptions.values().filter(func each = open(it, each)).map(func each = ?each).toArray();
      let those = if (open_.size() == 0) [null] else open_;
      func withPublisher(publisher : Principal) : Iter.Iter<Row> =
        those.map(func each = { it = ?it; publisher = ?publisher; each } : Row).values();
      it.publishers.keys().toArray().flatMap(withPublisher).values();
    });
    func meetsNone(each : Subscription) : Bool = not publications.values().any(func it = matches(each.namespace, it.namespace));
    let alone = subscriptions.values().filter(meetsNone);
    let all = found.concat(alone.map(func each = { it = null; publisher = null; each = ?each } : Row).toArray());
    all.filter(func row = asked.all(func slice = fits(row.it, row.publisher, row.each, slice)));
  };

  type Info = { namespace : Text; publicationId : Nat; config : Icrc72.Map; stats : Icrc72.Map };
  public query func icrc72_get_publications(asked : Icrc72.Page<Text>) : async [Info] {
    let found = Map.empty<Text, Publication>();
    for (row in rows(slices(asked)).values()) switch (row.it) { case (?it) found.add(it.namespace, it); case null {} };
    func byName(a : Publication, b : Publication) : Order = Text.compare(a.namespace, b.namespace);
    page<Text, Publication>(found.values().toArray(), asked, byName, func(it, prev) = it.namespace > prev).map(func it {
      let config = it.config.entries().toArray().concat([(publication # "creator", #Blob(it.creator.toBlob()))]);
      { namespace = it.namespace; publicationId = it.id; config; stats = [] };
    });
  };

  public query func icrc72_get_subscriptions(asked : Icrc72.Page<Nat>) : async [Icrc72.Subscription] {
    let found = Map.empty<Nat, Subscription>();
    for (row in rows(slices(asked)).values()) switch (row.each) { case (?each) found.add(each.id, each); case null {} };
    func byId(a : Subscription, b : Subscription) : Order = Nat.compare(a.id, b.id);
    page<Nat, Subscription>(found.values().toArray(), asked, byId, func(it, prev) = it.id > prev).map(func it {
      { subscriptionId = it.id; namespace = it.namespace; config = it.config.entries().toArray(); stats = [] };
    });
  };

  func those(asked : Icrc72.Page<Principal>, of : Row -> [?Principal]) : [Principal] {
    let found = Map.empty<Principal, ()>();
    for (row in rows(slices(asked)).values()) {
      for (each in of(row).values()) switch each { case (?who) found.add(who, ()); case null {} };
    };
    page<Principal, Principal>(found.keys().toArray(), asked, Principal.compare, func(who, prev) = who > prev);
  };
  func subscriberOf(each : ?Subscription) : ?Principal = switch each { case (?found) ?found.subscriber; case null null };
  func served(who : ?Principal) : ?Principal = switch who { case (?one) homes.get(one); case null null };

  type Who = Icrc72.Page<Principal>;
  public query func icrc72_get_publishers(asked : Who) : async [{ publisher : Principal; stats : Icrc72.Map }] =
    async those(asked, func row = [row.publisher]).map(func publisher = { publisher; stats = [] });
  public query func icrc72_get_subscribers(asked : Who) : async [{ subscriber : Principal; stats : Icrc72.Map }] =
    async those(asked, func row = [subscriberOf(row.each)]).map(func subscriber = { subscriber; stats = [] });
  public query func icrc72_get_broadcasters(asked : Who) : async [{ broadcaster : Principal; stats : Icrc72.Map }] {
    func both(row : Row) : [?Principal] = [served(row.publisher), served(subscriberOf(row.each))];
    let found = if (slices(asked).size() > 0) those(asked, both) else {
      let every = parties.values().filter(func each = each.role == "broadcaster").map(func each = each.id).toArray();
      page<Principal, Principal>(every, asked, Principal.compare, func(who, prev) = who > prev);
    };
    found.map(func broadcaster = { broadcaster; stats = [] });
  };

  type Status = {
    replayId : Nat; namespace : Text; config : Icrc72.Map; stats : Icrc72.Map; range : (Nat, ?Nat); status : Icrc72.State;
  };
  public query func icrc77_get_replays(asked : Icrc72.Page<Nat>) : async [?Status] {
    func byId(a : Replay, b : Replay) : Order = Nat.compare(a.id, b.id);
    page<Nat, Replay>(replays.values().toArray(), asked, byId, func(it, prev) = it.id > prev).map(func it {
      ?{ replayId = it.id; namespace = it.namespace; config = it.config; stats = []; range = it.range; status = it.state };
    });
  };
  /// Every round. A timer whose call to the canister itself meets a stop is not set again when the canister starts.
  system func heartbeat() : async () { await tick() };
};
