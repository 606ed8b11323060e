// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface Mintable {
  function mint(address to, uint256 amount) external;
}

/// Payments as exchanges and smart wallets make them, and as cheats pretend to: none of them is a top-level transfer.
contract Batcher {
  event Transfer(address indexed from, address indexed to, uint256 value);

  mapping(uint256 id => address payable) public payeeOf;

  /// Ether to many addresses in one call: no receipt names them, but the calldata does.
  function sendEther(address payable[] calldata to, uint256[] calldata amounts) external payable {
    for (uint256 i = 0; i < to.length; i++) _pay(to[i], amounts[i]);
  }

  /// Transfers of several tokens in one transaction: each one of them a log of its own token.
  function sendTokens(address[] calldata tokens, address[] calldata to, uint256[] calldata amounts) external {
    for (uint256 i = 0; i < to.length; i++) {
      Mintable(tokens[i]).mint(address(this), amounts[i]);
      // A raw call, since a token like USDT answers without the bool that a typed one would decode.
      (bool done, ) = tokens[i].call(abi.encodeWithSignature("transfer(address,uint256)", to[i], amounts[i]));
      require(done, "transfer failed");
    }
  }

  /// Mints `amount` of every token to every holder.
  function fund(address[] calldata tokens, address[] calldata holders, uint256 amount) external {
    for (uint256 i = 0; i < tokens.length; i++) {
      for (uint256 j = 0; j < holders.length; j++) Mintable(tokens[i]).mint(holders[j], amount);
    }
  }

  /// The log of a transfer that never was, from a contract that is no token.
  function fakeTransfer(address from, address to, uint256 amount) external {
    emit Transfer(from, to, amount);
  }

  /// Keeps ether for `payee`, whom the later `release` does not name.
  function keep(uint256 id, address payable payee) external payable {
    payeeOf[id] = payee;
  }

  /// Pays out what `keep` stored: neither a receipt nor the calldata names the payee.
  function release(uint256 id, uint256 amount) external {
    _pay(payeeOf[id], amount);
  }

  function _pay(address payable to, uint256 amount) private {
    (bool done, ) = to.call{value: amount}("");
    require(done, "payment failed");
  }
}
