// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import "./Token.sol";

/// An ERC-20 token as the standard says it: DAI and WBTC.
contract PlainToken is Token {
  constructor(string memory name_, string memory symbol_, uint8 decimals_) {
    _describe(name_, symbol_, decimals_);
  }

  function transfer(address to, uint256 amount) external returns (bool) {
    _move(msg.sender, to, amount);
    return true;
  }

  function transferFrom(address from, address to, uint256 amount) external returns (bool) {
    _spend(from, amount);
    _move(from, to, amount);
    return true;
  }

  function approve(address spender, uint256 amount) external returns (bool) {
    _approve(spender, amount);
    return true;
  }
}
