// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerStore

/// Commands during which the pepper is rotated.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AdminSessionTests {
  @Test("A command that was begun before a rotation stores nothing after it", arguments: Engine.allCases)
  func rotation(engine: Engine) async throws {
    let path = try ServerDirectories.new(onPostgreSQL: engine == .postgreSQL)
    defer {
      if let database = TestDeployment.database(of: path) { TestPostgreSQL.drop(database) }
      try? FileManager.default.removeItem(atPath: path)
    }
    let directory = ServerDirectory(path: path)
    let store = try await directory.openStore(directory.configuration().database)
    let hasher = try await directory.peppers(of: store).hasher
    let session = AdminSession(store: store, hasher: hasher, directory: directory)
    func client(_ id: String) -> APIClient {
      let hash = session.newPortalSecret().hash
      return APIClient(id: id, secretHash: hash, mayAuthenticate: true, mayManageDevices: true, mayIntrospect: false)
    }
    let (early, late) = (client("early"), client("late"))
    #expect(try await session.write { try $0.insertAPIClient(early) })
    let rotated = try run(BuiltProgram.path("token-server"), ["pepper", "rotate", "--directory", path])
    #expect(rotated.status == 0, "\(rotated.errors)")
    let error = await #expect(throws: CommandError.self) {
      _ = try await session.write { try $0.insertAPIClient(late) }
    }
    #expect(error?.description.contains("run the command again") == true)
    #expect(try await session.read { try $0.apiClients() }.map(\.id) == ["early"])
    store.close()
  }
}
