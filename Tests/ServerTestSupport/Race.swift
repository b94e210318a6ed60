// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

extension Curl {
  package typealias Command = (arguments: [String], input: [UInt8]?)

  /// Runs all commands concurrently, each with its own `curl`.
  /// - Returns: the replies, in the order of the commands.
  package func race(_ commands: [Command]) throws -> [Reply] {
    let replies = Mutex([Int: Result<Reply, any Error>]())
    let group = DispatchGroup()
    for (index, command) in commands.enumerated() {
      group.enter()
      let run = { @Sendable in
        let result = Result { try self(command.arguments, input: command.input) }
        replies.withLock { $0[index] = result }
        group.leave()
      }
      // One thread each: a queue would make some wait for others.
      Thread.detachNewThread(run)
    }
    group.wait()
    return try replies.withLock { replies in try commands.indices.map { try replies[$0]!.get() } }
  }
}
