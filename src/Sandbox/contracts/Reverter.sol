// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Payments that do not happen.
contract Reverter {
  error Refused();

  /// Every transaction to it fails, and its value stays with the sender.
  receive() external payable {
    revert Refused();
  }

  fallback() external payable {
    revert Refused();
  }

  /// Pays `to` and takes it back, while the transaction itself succeeds: its calldata names an address that got nothing.
  function swallow(address payable to) external payable {
    try this.payAndRevert(to, msg.value) {} catch {}
  }

  function payAndRevert(address payable to, uint256 amount) external {
    (bool done, ) = to.call{value: amount}("");
    require(done);
    revert Refused();
  }
}
