/// Makes calls of users, whom the roles do not admit, on a replica: the canister of `pubsub icrc72 conform --url … --proxy ID`.
/// It keeps the newest notifications that it gets. With `everybody`, whoever likes calls through it, otherwise only its controllers.
import Array "mo:core/Array";
import Error "mo:core/Error";
import InternetComputer "mo:core/InternetComputer";
import Principal "mo:core/Principal";
import Queue "mo:core/Queue";
import Icrc72 "Icrc72";

persistent actor class Proxy(everybody : Bool) {
  type Received = { caller : Principal; method : Text; arg : Blob };
  let kept = Queue.empty<Received>();
  var size = 0; // the bytes of the arguments that are kept
  var dropped = 0; // how many messages came before them

  func keep(message : Received) {
    kept.pushBack(message);
    size += message.arg.size();
    while (kept.size() > 1000 or size > 1_000_000) {
      let ?oldest = kept.popFront() else return;
      size -= oldest.arg.size();
      dropped += 1;
    };
  };

  public shared ({ caller }) func forward(canister : Principal, method : Text, arg : Blob) : async {
    #Ok : Blob; #Err : { code : Nat; message : Text };
  } {
    if (not everybody and not caller.isController()) return #Err({ code = 4; message = "only a controller calls through this proxy" });
    try { #Ok(await InternetComputer.call(canister, method, arg)) } catch error {
      #Err({ code = number(error.code()); message = error.message() });
    };
  };

  /// The number of a reject, as the interface of the Internet Computer has it.
  func number(code : Error.ErrorCode) : Nat = switch code {
    case (#system_fatal) 1; case (#system_transient) 2; case (#destination_invalid) 3; case (#canister_reject) 4;
    case (#canister_error) 5; case (#system_unknown) 6; case _ 2;
  };

  public shared ({ caller }) func icrc72_handle_notification(notes : [Icrc72.Notification]) : () {
    keep({ caller; method = "icrc72_handle_notification"; arg = to_candid (notes) });
  };

  public shared ({ caller }) func icrc72_handle_notification_trusted(notes : [Icrc72.Notification]) : async { #Ok : Icrc72.Value; #err : Text } {
    keep({ caller; method = "icrc72_handle_notification_trusted"; arg = to_candid (notes) });
    #Ok(#Nat(notes.size()));
  };

  /// The messages after the first `after` ones that ever came.
  public query func received(after : Nat) : async [Received] {
    let messages = kept.toArray();
    let first = if (after > dropped) after - dropped : Nat else 0;
    if (first >= messages.size()) [] else messages.sliceToArray(first, messages.size());
  };
};
