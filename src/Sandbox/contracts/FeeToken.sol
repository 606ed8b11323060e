// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import "./Token.sol";

/// A token that keeps a hundredth of each transfer.
contract FeeToken is Token {
  constructor(string memory name_, string memory symbol_, uint8 decimals_) {
    _describe(name_, symbol_, decimals_);
  }

  function transfer(address to, uint256 amount) external returns (bool) {
    uint256 fee = amount / 100;
    _move(msg.sender, address(this), fee);
    _move(msg.sender, to, amount - fee);
    return true;
  }
}
