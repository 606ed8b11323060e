// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import "./PlainToken.sol";

/// A token whose holders can sign a transfer that anybody may carry out, as USDC: https://eips.ethereum.org/EIPS/eip-3009
contract AuthorizedToken is PlainToken("", "", 0) {
  bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
  );
  string public constant version = "2";

  event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

  mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;
  mapping(address account => bool) public isBlacklisted;

  /// Anybody may: these tokens are worth nothing.
  function blacklist(address account) external {
    isBlacklisted[account] = true;
  }

  function _move(address from, address to, uint256 amount) internal override {
    require(!isBlacklisted[from] && !isBlacklisted[to], "account is blacklisted");
    super._move(from, to, amount);
  }

  function DOMAIN_SEPARATOR() public view returns (bytes32) {
    return keccak256(
      abi.encode(
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
        keccak256(bytes(name)),
        keccak256(bytes(version)),
        block.chainid,
        address(this)
      )
    );
  }

  function transferWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    uint8 v,
    bytes32 r,
    bytes32 s
  ) external {
    require(block.timestamp > validAfter && block.timestamp < validBefore, "authorization is not valid now");
    require(!authorizationState[from][nonce], "authorization is used");
    bytes32 data = keccak256(
      abi.encode(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce)
    );
    address signer = ecrecover(keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), data)), v, r, s);
    require(signer == from && signer != address(0), "invalid signature");
    authorizationState[from][nonce] = true;
    emit AuthorizationUsed(from, nonce);
    _move(from, to, value);
  }
}
