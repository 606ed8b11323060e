// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// What the test tokens share: balances, allowances and an open mint. The tokens differ only in what they return.
abstract contract Token {
  event Transfer(address indexed from, address indexed to, uint256 value);
  event Approval(address indexed owner, address indexed spender, uint256 value);

  string public name;
  string public symbol;
  uint8 public decimals;
  uint256 public totalSupply;
  mapping(address account => uint256) public balanceOf;
  mapping(address owner => mapping(address spender => uint256)) public allowance;

  /// Anybody may mint: these tokens are worth nothing.
  function mint(address to, uint256 amount) external {
    totalSupply += amount;
    balanceOf[to] += amount;
    emit Transfer(address(0), to, amount);
  }

  function _describe(string memory name_, string memory symbol_, uint8 decimals_) internal {
    name = name_;
    symbol = symbol_;
    decimals = decimals_;
  }

  function _move(address from, address to, uint256 amount) internal virtual {
    balanceOf[from] -= amount;
    balanceOf[to] += amount;
    emit Transfer(from, to, amount);
  }

  function _approve(address spender, uint256 amount) internal {
    allowance[msg.sender][spender] = amount;
    emit Approval(msg.sender, spender, amount);
  }

  function _spend(address owner, uint256 amount) internal {
    allowance[owner][msg.sender] -= amount;
  }
}
