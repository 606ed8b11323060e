// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// What tells a price, with the functions of Chainlink's AggregatorV3Interface: it says what it is told to say.
contract PriceFeed {
  string public description;
  uint8 public decimals;
  int256 private answer;
  uint256 private startedAt;
  uint256 private updatedAt;

  function describe(string calldata description_, uint8 decimals_) external {
    description = description_;
    decimals = decimals_;
  }

  function report(int256 answer_, uint256 startedAt_, uint256 updatedAt_) external {
    answer = answer_;
    startedAt = startedAt_;
    updatedAt = updatedAt_;
  }

  function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
    return (1, answer, startedAt, updatedAt, 1);
  }
}
