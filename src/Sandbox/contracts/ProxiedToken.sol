// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import "./AuthorizedToken.sol";

/// The code behind a proxy, as USDC's: the storage is the proxy's own, so it is described by a call, once.
contract ProxiedToken is AuthorizedToken {
  function initialize(string memory name_, string memory symbol_, uint8 decimals_) external {
    require(bytes(symbol).length == 0, "already initialized");
    _describe(name_, symbol_, decimals_);
  }
}
