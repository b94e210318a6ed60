// SPDX-License-Identifier: Apache-2.0
import ServiceLifecycle

/// ServiceLifecycle describes each service in its log. For a type without a description, Swift then describes all that
/// the service refers to, which takes milliseconds of a start.
struct NamedService: Service, CustomStringConvertible {
  private let service: any Service

  init(_ service: any Service) { self.service = service }

  var description: String { "\(type(of: service))" }

  func run() async throws { try await service.run() }
}
