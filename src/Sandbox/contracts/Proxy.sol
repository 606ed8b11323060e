// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Sends every call to the code whose address is in the slot of EIP-1967. The log's address stays the proxy's.
contract Proxy {
  /// keccak256("eip1967.proxy.implementation") - 1, https://eips.ethereum.org/EIPS/eip-1967
  bytes32 private constant IMPLEMENTATION = 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc;

  event Upgraded(address indexed implementation);

  /// `setup` is the first call to the implementation, made on this proxy's storage.
  constructor(address implementation, bytes memory setup) {
    assembly {
      sstore(IMPLEMENTATION, implementation)
    }
    emit Upgraded(implementation);
    (bool done, ) = implementation.delegatecall(setup);
    require(done, "setup failed");
  }

  fallback() external payable {
    assembly {
      calldatacopy(0, 0, calldatasize())
      let done := delegatecall(gas(), sload(IMPLEMENTATION), 0, calldatasize(), 0, 0)
      returndatacopy(0, 0, returndatasize())
      switch done
      case 0 {
        revert(0, returndatasize())
      }
      default {
        return(0, returndatasize())
      }
    }
  }
}
