// The messages of a room's WebSocket, see the server's documentation.

export interface Participant {
  name: string;
  /** Empty while there is no answer or the answer is hidden. */
  answer: string;
  /** Replaces a hidden answer. */
  hasAnswered?: boolean;
  userNumber: number;
  isMe: boolean;
}

export interface Room {
  id: string;
  isOpen: boolean;
  participants: Participant[];
}

export type FromServer =
  | { type: "connected"; userToken: string }
  | { type: "roomCreated"; roomId: string }
  | { type: "isExistTheRoomResult"; isExistTheRoom: boolean }
  | { type: "roomInfo"; revision: number; room: Room }
  | { type: "error"; error: string; message: string };

export type FromClient =
  | { type: "createRoom"; userName: string }
  | { type: "enterTheRoom"; userName: string; roomId: string; previousToken?: string; create?: boolean }
  | { type: "answer"; roomId: string; answer: string }
  | { type: "clearAnswer"; roomId: string; everyone?: boolean };

export function hasAnswered(participant: Participant): boolean {
  return participant.answer !== "" || participant.hasAnswered === true;
}
