/// A part of CandyPath: tests `path`, `path == word` (also != < <= > >=), joined by ` & ` and then by ` | `.
import Array "mo:core/Array";
import Char "mo:core/Char";
import Int "mo:core/Int";
import Iter "mo:core/Iter";
import Order "mo:core/Order";
import Principal "mo:core/Principal";
import Text "mo:core/Text";
import Icrc72 "Icrc72";

module {
  type Value = Icrc72.Value;

  /// Whether a text is a filter of this part.
  public func isFilter(text : Text) : Bool = tests(text).all(func each = each.all(isTest));

  /// Whether data pass; what is no filter lets nothing pass.
  public func passes(text : Text, data : Value) : Bool =
    tests(text).any(func each = each.all(func test = isTest(test) and holds(test, data)));

  func split(text : Text, by : Text) : [Text] = Text.split(text, #text by).toArray();
  func tests(text : Text) : [[[Text]]] =
    split(text, " | ").map(func each = split(each, " & ").map(func test = split(test, " ")));

  func isTest(test : [Text]) : Bool {
    let path = test[0];
    let named = path != "" and path.chars().all(func c = c.isAlphabetic() or c.isDigit() or c == '.' or c == '_' or c == '-');
    named and (test.size() == 1 or (test.size() == 3 and isOperator(test[1]) and test[2] != ""));
  };

  func isOperator(text : Text) : Bool = ["==", "!=", "<", "<=", ">", ">="].any(func each = each == text);

  func holds(test : [Text], data : Value) : Bool {
    var found : ?Value = ?data;
    for (name in split(test[0], ".").values()) {
      found := switch found { case (?#Map(pairs)) Icrc72.find(?pairs, name); case _ null };
    };
    let ?value = found else return false;
    if (test.size() == 1) return true;
    let ?order = compared(value, test[2]) else return test[1] == "!=";
    switch (test[1]) {
      case "==" order == #equal;
      case "!=" order != #equal;
      case "<" order == #less;
      case "<=" order != #greater;
      case ">" order == #greater;
      case _ order != #less;
    };
  };

  func compared(value : Value, word : Text) : ?Order.Order {
    let number = switch value { case (#Nat n) n; case (#Int n) n; case (#Text text) return ?Text.compare(text, word);
      case (#Bool flag) return ?Text.compare(if flag "true" else "false", word);
      case (#Principal who) return ?Text.compare(who.toText(), word); case _ return null };
    let ?other = Int.fromText(word) else return null;
    ?Int.compare(number, other);
  };
};
