// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import "./Token.sol";

/// A token that answers a transfer with no data at all, as USDT does on Ethereum: a caller that decodes a bool fails.
contract SilentToken is Token {
  constructor(string memory name_, string memory symbol_, uint8 decimals_) {
    _describe(name_, symbol_, decimals_);
  }

  function transfer(address to, uint256 amount) external {
    _move(msg.sender, to, amount);
  }

  function transferFrom(address from, address to, uint256 amount) external {
    _spend(from, amount);
    _move(from, to, amount);
  }

  function approve(address spender, uint256 amount) external {
    _approve(spender, amount);
  }
}
