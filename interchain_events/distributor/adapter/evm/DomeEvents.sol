// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The log of a network: call and events are the public contract's, each global id once where `unique` is set.
contract DomeEvents {
    error BadGlobalId();
    error TooLong();
    error AlreadyPublished(uint256 index);

    event EventDOMEv1(
        uint256 index,
        uint256 timestamp,
        bytes32 indexed publisherAddress,
        address authorAddress,
        bytes32 indexed entityIDHash,
        bytes32 indexed previousEntityHash,
        string eventType,
        string dataLocation,
        string[] metadata
    );
    /// Public adapters pass over the contract's first log entry, which is this one.
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    bool public immutable unique;
    uint256 public index;
    /// The place of an id's event in the log, from 1, by the Keccak-256 of the id; 0 for an id that was not published.
    mapping(bytes32 => uint256) public placeOf;

    constructor(bool unique_) {
        unique = unique_;
        emit OwnershipTransferred(address(0), msg.sender);
    }

    function emitNewEvent(
        bytes32 publisherAddress,
        address authorAddress,
        bytes32 entityIDHash,
        bytes32 previousEntityHash,
        string calldata eventType,
        string calldata dataLocation,
        string[] calldata metadata
    ) external returns (bool) {
        require(bytes(eventType).length <= 1020 && metadata.length <= 32, TooLong());
        for (uint256 i = 0; i < metadata.length; i++) require(bytes(metadata[i]).length <= 1024, TooLong());
        if (unique) {
            bytes32 id = globalId(dataLocation);
            uint256 place = placeOf[id];
            if (place != 0) revert AlreadyPublished(place - 1);
            placeOf[id] = index + 1;
        }
        emit EventDOMEv1(
            index++,
            block.timestamp,
            publisherAddress,
            authorAddress,
            entityIDHash,
            previousEntityHash,
            eventType,
            dataLocation,
            metadata
        );
        return true;
    }

    /// The Keccak-256 of the only query parameter `hl`, decoded once.
    function globalId(string calldata dataLocation) public pure returns (bytes32 id) {
        bytes calldata url = bytes(dataLocation);
        require(url.length <= 2048, TooLong());
        uint256 end = _find(url, 0, url.length, "#");
        uint256 at = _find(url, 0, end, "?");
        bool found;
        while (at < end) {
            uint256 next = _find(url, at + 1, end, "&");
            uint256 equals = _find(url, at + 1, next, "=");
            if (_isHl(url[at + 1:equals])) {
                require(!found && equals < next, BadGlobalId());
                found = true;
                id = _decoded(url[equals + 1:next]);
            }
            at = next;
        }
        require(found, BadGlobalId());
    }

    function _at(bytes calldata text, uint256 at) private pure returns (uint8 c) {
        assembly {
            c := byte(0, calldataload(add(text.offset, at)))
        }
    }

    function _find(bytes calldata text, uint256 from, uint256 end, bytes1 wanted) private pure returns (uint256) {
        unchecked {
            while (from < end && _at(text, from) != uint8(wanted)) from++;
        }
        return from;
    }

    function _isHl(bytes calldata name) private pure returns (bool) {
        if (name.length < 2 || name.length > 6) return false;
        (bytes memory decoded, bool escaped) = _unescaped(name);
        return escaped && keccak256(decoded) == keccak256("hl");
    }

    function _decoded(bytes calldata value) private pure returns (bytes32) {
        (bytes memory decoded, bool escaped) = _unescaped(value);
        require(escaped && decoded.length != 0, BadGlobalId());
        require(decoded.length <= 256, TooLong());
        unchecked {
            for (uint256 i = 0; i < decoded.length; i++) {
                // a bit for each of A-Z a-z 0-9 . _ ~ : / + = , @ -
                uint256 c;
                assembly {
                    c := byte(0, mload(add(add(decoded, 32), i)))
                }
                require((0x47fffffe87ffffff27fff80000000000 >> c) & 1 != 0, BadGlobalId());
            }
        }
        return keccak256(decoded);
    }

    /// The text with each escape decoded once, and whether every percent sign begins an escape.
    function _unescaped(bytes calldata text) private pure returns (bytes memory decoded, bool escaped) {
        decoded = new bytes(text.length);
        uint256 length;
        unchecked {
            for (uint256 i = 0; i < text.length; i++) {
                uint8 c = _at(text, i);
                if (c == 0x25) {
                    if (i + 2 >= text.length) return (decoded, false);
                    (uint8 high, uint8 low) = (_digit(_at(text, i + 1)), _digit(_at(text, i + 2)));
                    if (high > 15 || low > 15) return (decoded, false);
                    c = high * 16 + low;
                    i += 2;
                }
                assembly {
                    mstore8(add(add(decoded, 32), length), c)
                }
                length++;
            }
        }
        assembly {
            mstore(decoded, length)
        }
        return (decoded, true);
    }

    function _digit(uint8 c) private pure returns (uint8) {
        unchecked {
            if (c >= 0x30 && c <= 0x39) return c - 48;
            if (c >= 0x41 && c <= 0x46) return c - 55;
            if (c >= 0x61 && c <= 0x66) return c - 87;
        }
        return 255;
    }
}
